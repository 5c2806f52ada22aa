/**
 * What the gateway buffered in memory for peers that do not read, all connections of a sandbox together. Each one alone is
 * held back by the kernel's own windows; thousands of them, opened on purpose, would still fill the host's memory.
 */

/** Somebody who may hold bytes: at this moment so many. */
export interface BufferOwner {
  readonly buffered: number
  /** It buffered more than there is room for: it has to let go of everything. */
  overrun(): void
}

/** Soon enough that little comes in between, and once for all that happens until then, unless much happens. */
const COUNT_AFTER_MS = 10
const COUNT_AFTER_NOTES = 64

export class BufferBudget {
  readonly #most: number
  /** In the order in which they began: it is the newest that has to go. */
  readonly #holders = new Set<BufferOwner>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #notes = 0

  constructor(most: number) {
    this.#most = most
  }

  /** It has begun to hold something, or buffered more. */
  note(holder: BufferOwner): void {
    this.#holders.add(holder)
    if (++this.#notes >= COUNT_AFTER_NOTES) this.count()
    else this.#timer ??= setTimeout(() => this.count(), COUNT_AFTER_MS)
  }

  /** All of them together. Also called from time to time, because what the runtime reads ahead nobody tells. */
  count(): number {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#notes = 0
    let sum = 0
    for (const holder of this.#holders) {
      const { buffered } = holder
      if (buffered > 0 && sum + buffered <= this.#most) sum += buffered
      else {
        this.#holders.delete(holder)
        if (buffered > 0) holder.overrun()
      }
    }
    return sum
  }
}
