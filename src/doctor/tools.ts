/** Checks bubblewrap, and the other host programs that pen starts. */
import { statSync } from 'node:fs'
import { findTool, missingTool, TRUSTED_DIRECTORIES } from '../base/find-tool.ts'
import { SYSTEM_ROOTS } from '../plan/system-view.ts'
import { installLine, installWords } from './distribution.ts'
import { fails, failureOf, type Machine, ok, type Result, weak } from './finding.ts'
import { describeEscapes, escapesOf, TABLE_DATE } from './known-escapes.ts'
import { askVersion } from './version.ts'

interface Tool {
  readonly name: string
  readonly package: string
  /** By every run, by runs as root, or by no run. */
  readonly needed: 'always' | 'by-root' | 'never'
  readonly use: string
}

const TOOLS: readonly Tool[] = [
  { name: 'sh', package: 'dash', needed: 'always', use: 'starts every sandbox' },
  {
    name: 'cat',
    package: 'coreutils',
    needed: 'by-root',
    use: 'passes output of sandboxes that root starts',
  },
  { name: 'unshare', package: 'util-linux', needed: 'always', use: 'makes namespaces' },
  { name: 'nsenter', package: 'util-linux', needed: 'always', use: 'enters namespaces' },
  { name: 'prlimit', package: 'util-linux', needed: 'never', use: 'limits processes if there is no cgroup' },
  { name: 'setpriv', package: 'util-linux', needed: 'never', use: 'sets that limit as another user' },
  { name: 'setsid', package: 'util-linux', needed: 'never', use: 'gives interactive programs job control' },
  { name: 'git', package: 'git', needed: 'never', use: 'is used in most projects' },
]
/** A shell prints no version, and that of cat says nothing. */
const WITHOUT_VERSION = ['sh', 'cat']

export async function checkTools({ distribution }: Machine): Promise<readonly Result[]> {
  const isRoot = process.getuid?.() === 0
  return await Promise.all(
    TOOLS.map(async ({ name, package: from, needed, use }) => {
      const id = `tool-${name}`
      const path = findTool(name)
      if (path === undefined) {
        const { message, hint } = missingTool(name, installLine(distribution, from))
        const isNeeded = needed === 'always' || (needed === 'by-root' && isRoot)
        return {
          id,
          ...(isNeeded ? fails : weak)(message, `it ${use}`, hint),
          does: installWords(distribution, from),
        }
      }
      const version = WITHOUT_VERSION.includes(name) ? undefined : await askVersion(path)
      return { id, ...ok(version === undefined ? path : `${path} ${version}`) }
    }),
  )
}

/** Binds only system directories: bubblewrap fails if a mount disappears while it runs, such as a container's. */
const SANDBOX = [
  '--unshare-all',
  ...SYSTEM_ROOTS.flatMap(root => ['--ro-bind-try', root, root]),
  ...['--dev', '/dev', '--proc', '/proc', '--'],
]

/** Its path, its version, and whether it can create a sandbox. */
export async function checkBubblewrap({ distribution }: Machine): Promise<Result> {
  // Like the backend, accept only a bwrap that root alone can change: it becomes the sandbox's first process.
  const rootsOwn = TRUSTED_DIRECTORIES.filter(({ owner }) => owner === 'root')
  const bwrap = findTool('bwrap', rootsOwn)
  const install = installLine(distribution, 'bubblewrap')
  if (bwrap === undefined) {
    const { message, hint } = missingTool('bwrap', install, rootsOwn)
    return {
      ...fails(message, 'it creates the sandbox', hint),
      does: installWords(distribution, 'bubblewrap'),
    }
  }
  const version = (await askVersion(bwrap)) ?? '(unknown version)'
  const failure = await failureOf([bwrap, ...SANDBOX, findTool('true') ?? '/bin/true'])
  if (failure !== undefined)
    return fails(
      `${bwrap} ${version} could not create a sandbox`,
      failure,
      'see the fixes for user namespaces and the kernel',
    )
  const works = `${bwrap} ${version} works`
  const isSetuid = (statSync(bwrap).mode & 0o4000) !== 0
  const escapes = escapesOf('bwrap', version, isSetuid)
  if (escapes.length > 0) return weak(works, `${describeEscapes(escapes)} (as of ${TABLE_DATE})`, install)
  if (!isSetuid) return ok(works)
  return weak(works, 'it is setuid root, which is not needed with user namespaces', `sudo chmod u-s ${bwrap}`)
}
