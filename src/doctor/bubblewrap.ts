/** Checks bubblewrap: its path, its version, and whether it can create a sandbox. */
import { statSync } from 'node:fs'
import { findTool, missingTool, TRUSTED_DIRECTORIES } from '../base/find-tool.ts'
import { capture } from '../base/spawn.ts'
import { SYSTEM_ROOTS } from '../plan/system-view.ts'
import { installLine } from './distribution.ts'
import { type Finding, fails, lastLine, ok, weak } from './finding.ts'
import { describeEscapes, escapesOf, TABLE_DATE } from './known-escapes.ts'
import type { Machine } from './machine.ts'
import { askVersion } from './version.ts'

const ID = 'bubblewrap'
/** Binds only system directories: bubblewrap fails if a mount disappears while it runs, such as a container's. */
const SANDBOX = [
  '--unshare-all',
  ...SYSTEM_ROOTS.flatMap(root => ['--ro-bind-try', root, root]),
  ...['--dev', '/dev', '--proc', '/proc', '--'],
]

export async function checkBubblewrap({ distribution }: Machine): Promise<readonly Finding[]> {
  // Like the backend, accept only a bwrap that root alone can change: it becomes the sandbox's first process.
  const rootsOwn = TRUSTED_DIRECTORIES.filter(({ owner }) => owner === 'root')
  const bwrap = findTool('bwrap', rootsOwn)
  const program = findTool('true')
  if (bwrap === undefined) {
    const { message, hint } = missingTool('bwrap', installLine(distribution, 'bubblewrap'), rootsOwn)
    return [fails(ID, message, 'it creates the sandbox', hint)]
  }
  const version = (await askVersion(bwrap)) ?? '(unknown version)'
  const { code, stderr } = await capture([bwrap, ...SANDBOX, program ?? '/bin/true'], {
    env: {},
    timeoutMs: 5000,
    cwd: '/',
  })
  if (code !== 0)
    return [
      fails(
        ID,
        `${bwrap} ${version} could not create a sandbox`,
        lastLine(stderr) || `exit ${code}`,
        'see the fixes for user namespaces and the kernel',
      ),
    ]
  const isSetuid = (statSync(bwrap).mode & 0o4000) !== 0
  const escapes = escapesOf('bwrap', version, isSetuid)
  if (escapes.length > 0)
    return [
      weak(
        ID,
        `${bwrap} ${version} works`,
        `${describeEscapes(escapes)} (as of ${TABLE_DATE})`,
        installLine(distribution, 'bubblewrap'),
      ),
    ]
  if (isSetuid)
    return [
      weak(
        ID,
        `${bwrap} ${version} works`,
        'it is setuid root, which is not needed with user namespaces',
        `sudo chmod u-s ${bwrap}`,
      ),
    ]
  return [ok(ID, `${bwrap} ${version} works`)]
}
