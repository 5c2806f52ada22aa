/** Host programs that pen starts, with their versions. Bubblewrap has a separate check. */
import { findTool, missingTool } from '../base/find-tool.ts'
import { installLine } from './distribution.ts'
import { type Finding, fails, ok, weak } from './finding.ts'
import type { Machine } from './machine.ts'
import { askVersion } from './version.ts'

interface Tool {
  readonly name: string
  readonly package: string
  /** By every run, by runs as root, or by no run. */
  readonly needed: 'always' | 'by-root' | 'never'
  readonly use: string
  /** Whether it prints a version; a shell does not. */
  readonly hasVersion?: boolean
}

const TOOLS: readonly Tool[] = [
  { name: 'sh', package: 'dash', needed: 'always', use: 'starts every sandbox' },
  {
    name: 'cat',
    package: 'coreutils',
    needed: 'by-root',
    use: 'passes output of sandboxes that root starts',
  },
  { name: 'unshare', package: 'util-linux', needed: 'always', use: 'makes namespaces', hasVersion: true },
  { name: 'nsenter', package: 'util-linux', needed: 'always', use: 'enters namespaces', hasVersion: true },
  {
    name: 'prlimit',
    package: 'util-linux',
    needed: 'never',
    use: 'limits processes if there is no cgroup',
    hasVersion: true,
  },
  {
    name: 'setpriv',
    package: 'util-linux',
    needed: 'never',
    use: 'sets that limit as another user',
    hasVersion: true,
  },
  {
    name: 'setsid',
    package: 'util-linux',
    needed: 'never',
    use: 'gives interactive programs job control',
    hasVersion: true,
  },
  { name: 'git', package: 'git', needed: 'never', use: 'is used in most projects', hasVersion: true },
]

export async function checkTools({ distribution }: Machine): Promise<readonly Finding[]> {
  const isRoot = process.getuid?.() === 0
  return await Promise.all(
    TOOLS.map(async ({ name, package: from, needed, use, hasVersion }) => {
      const id = `tool-${name}`
      const path = findTool(name)
      if (path === undefined) {
        const { message, hint } = missingTool(name, installLine(distribution, from))
        const isNeeded = needed === 'always' || (needed === 'by-root' && isRoot)
        return (isNeeded ? fails : weak)(id, message, `it ${use}`, hint)
      }
      const version = hasVersion ? await askVersion(path) : undefined
      return ok(id, version === undefined ? path : `${path} ${version}`)
    }),
  )
}
