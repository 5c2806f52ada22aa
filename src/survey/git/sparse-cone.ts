/**
 * Which paths a sparse checkout has, by the patterns of git's cone mode. git says that only from version 2.41 on. Other patterns
 * have no simple answer, and then each path counts as there.
 */

/** `/DIR/` takes all below a directory. With `!/DIR/` and a star behind it, only the files in it. */
export function readCone(text: string): (path: string) => boolean {
  const lines = text.split('\n').filter(line => line !== '')
  if (lines.length === 0 || lines.some(line => !/^(?:\/\*|!\/\*\/|!?\/.+\/)$/.test(line))) return () => true
  const named = (pattern: RegExp): ReadonlySet<string> =>
    new Set(lines.flatMap(line => pattern.exec(line)?.[1]?.replace(/\\(.)/g, '$1') ?? []))
  const shallow = named(/^!\/(.+)\/\*\/$/)
  const deep = new Set([...named(/^\/(.+)\/$/)].filter(dir => !shallow.has(dir)))
  if (!lines.includes('!/*/')) return () => true
  return path => {
    const slash = path.lastIndexOf('/')
    if (slash < 0 || shallow.has(path.slice(0, slash))) return true
    for (let end = slash; end > 0; end = path.lastIndexOf('/', end - 1))
      if (deep.has(path.slice(0, end))) return true
    return false
  }
}
