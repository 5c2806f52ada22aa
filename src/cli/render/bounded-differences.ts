/** The differences of many changes. A sandbox can fill the memory with them, so there is a bound. The list of changes is always whole. */
const MOST_SHOWN = 32 * 2 ** 20
const LINE_COST = 32

export function boundedDifferences<T>(
  changes: readonly T[],
  show: (change: T) => readonly string[],
): { readonly lines: readonly string[]; readonly more: number } {
  const lines: string[] = []
  let [left, more] = [MOST_SHOWN, 0]
  for (const change of changes) {
    if (left < 0) more++
    else
      for (const line of show(change)) {
        lines.push(line)
        left -= line.length + LINE_COST
      }
  }
  return { lines, more }
}
