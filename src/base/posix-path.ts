/** POSIX paths, with the results of `node:path`. Loading that module costs a third of a millisecond of every start. */

export const isAbsolute = (path: string): boolean => path.startsWith('/')

/** The path without its last component and the slash before it. */
export function dirname(path: string): string {
  const slash = path.lastIndexOf('/', endOf(path) - 1)
  if (slash < 0) return '.'
  if (slash === 0) return '/'
  // POSIX lets each system define two leading slashes.
  return slash === 1 && path.startsWith('/') ? '//' : path.slice(0, slash)
}

export function basename(path: string): string {
  const end = endOf(path)
  return path.slice(path.lastIndexOf('/', end - 1) + 1, end)
}

export function join(...parts: readonly string[]): string {
  const path = parts.filter(part => part !== '').join('/')
  if (path === '') return '.'
  const walked = walk(path)
  if (walked === '') return path.startsWith('/') ? '/' : path.endsWith('/') ? './' : '.'
  return path.endsWith('/') && !walked.endsWith('/') ? `${walked}/` : walked
}

/** Joins the parts from the last absolute one on, or from the current directory. */
export function resolve(...parts: readonly string[]): string {
  let path = ''
  for (let i = parts.length - 1; i >= 0 && !path.startsWith('/'); i--)
    if (parts[i] !== '') path = path === '' ? (parts[i] ?? '') : `${parts[i]}/${path}`
  return walk(path.startsWith('/') ? path : `${process.cwd()}/${path}`)
}

/** Its end without trailing slashes. */
function endOf(path: string): number {
  let end = path.length
  while (end > 0 && path[end - 1] === '/') end--
  return end
}

/** Removes empty components and `.`, and resolves `..` where possible. */
function walk(path: string): string {
  const root = path.startsWith('/') ? '/' : ''
  const names: string[] = []
  for (const name of path.split('/'))
    if (name === '..' && (root !== '' || (names.length > 0 && names.at(-1) !== '..'))) names.pop()
    else if (name !== '' && name !== '.') names.push(name)
  return root + names.join('/')
}
