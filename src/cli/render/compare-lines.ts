/** What changed between two texts, line by line. */

export interface LineChange {
  readonly sign: ' ' | '-' | '+'
  readonly line: string
}

/** Larger comparisons would take seconds. Then all old lines are removed and all new lines are added. */
const MAX_PAIRS = 4_000_000

export function compareLines(old: readonly string[], fresh: readonly string[]): readonly LineChange[] {
  const most = Math.min(old.length, fresh.length)
  let head = 0
  while (head < most && old[head] === fresh[head]) head++
  let tail = 0
  while (tail < most - head && old.at(-1 - tail) === fresh.at(-1 - tail)) tail++
  const same = (line: string): LineChange => ({ sign: ' ', line })
  return [
    ...old.slice(0, head).map(same),
    ...compareMiddle(old.slice(head, old.length - tail), fresh.slice(head, fresh.length - tail)),
    ...old.slice(old.length - tail).map(same),
  ]
}

/** Longest common subsequence. */
function compareMiddle(old: readonly string[], fresh: readonly string[]): LineChange[] {
  const width = fresh.length + 1
  if (old.length * width > MAX_PAIRS)
    return [
      ...old.map(line => ({ sign: '-', line }) as const),
      ...fresh.map(line => ({ sign: '+', line }) as const),
    ]
  const length = new Uint32Array((old.length + 1) * width)
  const at = (i: number, j: number): number => length[i * width + j] ?? 0
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = fresh.length - 1; j >= 0; j -= 1)
      length[i * width + j] =
        old[i] === fresh[j] ? at(i + 1, j + 1) + 1 : Math.max(at(i + 1, j), at(i, j + 1))
  const changes: LineChange[] = []
  for (let i = 0, j = 0; i < old.length || j < fresh.length; ) {
    if (i < old.length && j < fresh.length && old[i] === fresh[j]) {
      changes.push({ sign: ' ', line: old[i] ?? '' })
      i += 1
      j += 1
    } else if (j >= fresh.length || (i < old.length && at(i + 1, j) >= at(i, j + 1))) {
      changes.push({ sign: '-', line: old[i] ?? '' })
      i += 1
    } else {
      changes.push({ sign: '+', line: fresh[j] ?? '' })
      j += 1
    }
  }
  return changes
}
