/**
 * Keeps the ways to denied paths. A sandbox could rename a directory on the way and put a link there. Then the host's next
 * file would land at a path that is not denied. So directories on the way are pinned, and links are moved away. Verdicts are
 * about real paths, so a rule whose way has a link at the start denies nothing: that stops the start. A link at the denied
 * name itself is restored, and what leads to its target is kept too.
 */
import { lookAt } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { dirname } from '../base/posix-path.ts'
import { printable } from '../base/printable.ts'
import { locate } from '../config/locate.ts'
import { isPattern } from '../policy/files/glob.ts'
import { isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { linkTarget, linkText, MAX_LINKS } from './links.ts'
import type { PlacesFound, Watched } from './places.ts'

export type DeniedWays = Omit<PlacesFound, 'protect'>

/**
 * The paths of the rules, with links not yet resolved. A glob counts up to its first pattern: there may be thousands of
 * directories that match a pattern.
 */
const named = ({ workspace, files }: Policy): readonly string[] =>
  files.deny.flatMap(({ rule }) => {
    if (rule.kind === 'path') return rule.alias === undefined ? [rule.path] : [rule.path, rule.alias]
    const { anyDepth, components } = rule.glob
    const first = components.findIndex(isPattern)
    return anyDepth ? [] : [[workspace, ...components.slice(0, first < 0 ? undefined : first + 1)].join('/')]
  })

/** `matches` are existing paths that globs deny: their directories are pinned with their covers. */
export function deniedWays(policy: Policy, matches: readonly string[]): DeniedWays {
  const roots = [policy.workspace, ...policy.files.write.map(({ rule }) => rule.path)]
  const pins = new Set<string>()
  const watch = new Map<string, Watched>()
  const follow = (path: string, isNamed: boolean, links = 0): void => {
    const root = roots.find(one => path.startsWith(`${one}/`))
    if (root === undefined || links > MAX_LINKS) return
    for (let end = root.length; end < path.length; ) {
      const slash = path.indexOf('/', end + 1)
      end = slash < 0 ? path.length : slash
      const prefix = path.slice(0, end)
      const stats = lookAt(prefix)
      const text = stats?.isSymbolicLink() ? linkText(prefix) : undefined
      if (text !== undefined) {
        if (isNamed && links === 0 && slash >= 0)
          throw linkOnWay(prefix, linkTarget(prefix, text) + path.slice(end), policy.workspace)
        watch.set(prefix, { path: prefix, root, rule: { kind: 'link', text } })
        follow(linkTarget(prefix, text) + path.slice(end), isNamed, links + 1)
        return
      }
      if (isNamed && slash >= 0 && stats?.isDirectory()) pins.add(prefix)
    }
    const last = dirname(path)
    if (isNamed && last !== root) watch.set(last, { path: last, root, rule: { kind: 'no-link' } })
  }
  for (const path of named(policy)) follow(beneath(path, roots), true)
  for (const path of matches) follow(path, false)
  return { pins: [...pins], watch: [...watch.values()] }
}

/** Links of the host above a root, such as `/home`, are resolved. Those in a root stay as they are written. */
function beneath(path: string, roots: readonly string[]): string {
  const isInRoot = (one: string): boolean => roots.some(root => isWithin(one, root))
  if (isInRoot(path)) return path
  for (let end = path.indexOf('/', 1); end > 0; end = path.indexOf('/', end + 1)) {
    const { real } = locate(path.slice(0, end))
    if (isInRoot(real)) return real + path.slice(end)
  }
  return path
}

const linkOnWay = (link: string, target: string, workspace: string): PenError =>
  new PenError('PATH_REFUSED', {
    what: 'the way to a denied path leads through this link, and the rule would not cover what is behind it',
    at: printable(link, 1024),
    hint: `deny what is behind it: ${printable(isWithin(target, workspace) ? target.slice(workspace.length + 1) : target, 1024)}`,
  })
