/** The command line that starts this program again: the compiled binary, or Bun with the source. */
export function ownProgram(): readonly [string, ...string[]] {
  if (import.meta.path.startsWith('/$bunfs/')) return [process.execPath]
  return [process.execPath, new URL('../main.ts', import.meta.url).pathname]
}
