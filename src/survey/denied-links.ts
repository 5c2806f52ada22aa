/**
 * Links from a denied name to a file in the workspace. The mount covers the file, but a sandbox can remove the link. Then
 * the next run would not know that the file is denied. So pen watches these links and restores them.
 */
import { lookAt } from '../base/beneath/look-at.ts'
import { dirname, resolve } from '../base/posix-path.ts'
import { linkText, MAX_LINKS, type Watched } from './places.ts'

/** `paths` are the names that the rules deny, with links not yet resolved. */
export function deniedLinks(paths: readonly string[], workspace: string): readonly Watched[] {
  const found = new Map<string, Watched>()
  for (const path of paths) follow(path, workspace, found, 0)
  return [...found.values()]
}

function follow(path: string, root: string, found: Map<string, Watched>, links: number): void {
  if (!path.startsWith(`${root}/`) || links > MAX_LINKS) return
  for (let end = root.length; end < path.length; ) {
    const slash = path.indexOf('/', end + 1)
    end = slash < 0 ? path.length : slash
    const prefix = path.slice(0, end)
    if (!lookAt(prefix)?.isSymbolicLink()) continue
    const text = linkText(prefix)
    if (text === undefined || found.has(prefix)) return
    found.set(prefix, { path: prefix, root, rule: { kind: 'link', text } })
    follow(resolve(dirname(prefix), text) + path.slice(end), root, found, links + 1)
    return
  }
}
