/**
 * Counts what appears at protected places. A sandbox that plants again and again would keep a place occupied for most of the
 * time, so its run ends. A tool that writes its file there at each of its steps goes on: to unpack a directory of 20 files
 * can take 20 moves.
 */
const WINDOW_MS = 10_000
const MAX_AT_ONE = 20
const MAX_IN_ALL = 64

export class Repeats {
  readonly #times = new Map<string, number[]>()
  readonly #mostAtOne: number

  constructor(mostAtOne = MAX_AT_ONE) {
    this.#mostAtOne = mostAtOne
  }

  /** True when it was too often in the last seconds, at this place or at all. */
  isTooOften(path: string, now = performance.now()): boolean {
    this.#times.set(path, [...(this.#times.get(path) ?? []), now])
    let all = 0
    for (const [one, times] of this.#times) {
      const recent = times.filter(time => time > now - WINDOW_MS)
      if (recent.length === 0) this.#times.delete(one)
      else this.#times.set(one, recent)
      all += recent.length
    }
    return all >= MAX_IN_ALL || (this.#times.get(path)?.length ?? 0) >= this.#mostAtOne
  }
}
