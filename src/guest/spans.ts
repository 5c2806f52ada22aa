/**
 * When each execution ran, in the kernel's own time. A process that has left its session and its parents and thrown its
 * variables away still has a time at which it was started: if one execution alone ran then, that one started it.
 */
import { readFileSync } from 'node:fs'

/** Ticks since the machine was started; the kernel counts a hundred a second in what it tells. */
export type Ticks = number

const PER_SECOND = 100
const MOST = 1024

interface Span {
  readonly channel: number
  readonly from: Ticks
  to: Ticks
}

export class Spans {
  readonly #now: () => Ticks
  #spans: Span[] = []
  /** Until then it is not known any more who ran. */
  #forgotten: Ticks = -1

  constructor(now: () => Ticks = uptime) {
    this.#now = now
  }

  begin(channel: number): void {
    this.#spans.push({ channel, from: this.#now(), to: Number.POSITIVE_INFINITY })
    if (this.#spans.length <= MOST) return
    // One that still runs may have started anything since.
    const oldest = this.#spans.findIndex(({ to }) => to !== Number.POSITIVE_INFINITY)
    const [gone] = this.#spans.splice(Math.max(0, oldest), 1)
    this.#forgotten = Math.max(this.#forgotten, gone?.to ?? 0)
  }

  end(channel: number): void {
    const span = this.#spans.find(one => one.channel === channel)
    if (span !== undefined) span.to = this.#now()
  }

  /** Whether it was this execution, and no other, that ran at a time. */
  isAlone(channel: number, at: Ticks): boolean {
    if (at <= this.#forgotten) return false
    const running = this.#spans.filter(({ from, to }) => from <= at && at <= to)
    return running.length === 1 && running[0]?.channel === channel
  }
}

const uptime = (): Ticks =>
  Math.floor(Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * PER_SECOND)
