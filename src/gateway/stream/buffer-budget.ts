/**
 * Limits the bytes that the gateway buffers for peers that do not read, over all connections of a sandbox. Flow control
 * limits each connection, but thousands of them could still fill the memory of the host.
 */

export interface BufferOwner {
  readonly buffered: number
  /** Over the limit: must drop everything. */
  overrun(): void
}

/** Counting is delayed, so that one count covers many notes. Many notes trigger it early. */
const COUNT_AFTER_MS = 10
const COUNT_AFTER_NOTES = 64

export class BufferBudget {
  readonly #most: number
  /** In insertion order, so that the newest is dropped. */
  readonly #owners = new Set<BufferOwner>()
  #timer: ReturnType<typeof setTimeout> | undefined
  #notes = 0

  constructor(most: number) {
    this.#most = most
  }

  /** Called when an owner buffers more bytes. */
  note(owner: BufferOwner): void {
    this.#owners.add(owner)
    if (++this.#notes >= COUNT_AFTER_NOTES) this.count()
    else this.#timer ??= setTimeout(() => this.count(), COUNT_AFTER_MS)
  }

  /** Sums all buffers and drops the newest over the limit. Also called periodically, because Bun reads ahead silently. */
  count(): number {
    clearTimeout(this.#timer)
    this.#timer = undefined
    this.#notes = 0
    let sum = 0
    for (const owner of this.#owners) {
      const { buffered } = owner
      if (buffered > 0 && sum + buffered <= this.#most) sum += buffered
      else {
        this.#owners.delete(owner)
        if (buffered > 0) owner.overrun()
      }
    }
    return sum
  }
}
