/** Programs of the host that pen starts, with their versions. Bubblewrap has a check of its own. */
import { findTool } from '../base/find-tool.ts'
import { missingTool } from '../base/missing-tool.ts'
import { installLine } from './distribution.ts'
import { type Finding, fails, ok, weak } from './finding.ts'
import type { Machine } from './machine.ts'
import { askVersion } from './version.ts'

interface Tool {
  readonly name: string
  readonly package: string
  /** By every run, by those of root, or by none. */
  readonly needed: 'always' | 'by-root' | 'never'
  readonly use: string
  /** Asked for its version: a shell and the like have none to tell. */
  readonly tells?: boolean
}

const TOOLS: readonly Tool[] = [
  { name: 'sh', package: 'dash', needed: 'always', use: 'starts every sandbox' },
  { name: 'cat', package: 'coreutils', needed: 'by-root', use: 'carries output where root runs a sandbox' },
  { name: 'unshare', package: 'util-linux', needed: 'always', use: 'makes namespaces', tells: true },
  { name: 'nsenter', package: 'util-linux', needed: 'always', use: 'enters namespaces', tells: true },
  {
    name: 'prlimit',
    package: 'util-linux',
    needed: 'never',
    use: 'bounds the processes of a sandbox where no cgroup does',
    tells: true,
  },
  { name: 'setpriv', package: 'util-linux', needed: 'never', use: 'does that as another user', tells: true },
  {
    name: 'setsid',
    package: 'util-linux',
    needed: 'never',
    use: 'gives interactive programs job control',
    tells: true,
  },
  { name: 'git', package: 'git', needed: 'never', use: 'is what most sandboxes work with', tells: true },
]

export async function checkTools({ distribution }: Machine): Promise<readonly Finding[]> {
  const isRoot = process.getuid?.() === 0
  return await Promise.all(
    TOOLS.map(async ({ name, package: from, needed, use, tells }) => {
      const id = `tool-${name}`
      const path = findTool(name)
      if (path === undefined) {
        const { message, hint } = missingTool(name, installLine(distribution, from))
        const isNeeded = needed === 'always' || (needed === 'by-root' && isRoot)
        return (isNeeded ? fails : weak)(id, message, `it ${use}`, hint)
      }
      const version = tells ? await askVersion(path) : undefined
      return ok(id, version === undefined ? path : `${path} ${version}`)
    }),
  )
}
