/** This very program, as words to start it with: the compiled binary, or Bun with the source it runs from. */
export function ownProgram(): readonly [string, ...string[]] {
  if (import.meta.path.startsWith('/$bunfs/')) return [process.execPath]
  return [process.execPath, new URL('../main.ts', import.meta.url).pathname]
}
