/**
 * When each execution ran, in the kernel's time. A process may leave its session and its parents and drop its
 * variables. Its start time remains: if only one execution ran then, that one started it.
 */
import { readFileSync } from 'node:fs'

/** Ticks since boot. The kernel reports 100 per second. */
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
  /** Executions before this time have been forgotten. */
  #forgotten: Ticks = -1

  constructor(now: () => Ticks = uptime) {
    this.#now = now
  }

  begin(channel: number): void {
    this.#spans.push({ channel, from: this.#now(), to: Number.POSITIVE_INFINITY })
    if (this.#spans.length <= MOST) return
    // A running execution may have started any process since its start.
    const oldest = this.#spans.findIndex(({ to }) => to !== Number.POSITIVE_INFINITY)
    const [gone] = this.#spans.splice(Math.max(0, oldest), 1)
    this.#forgotten = Math.max(this.#forgotten, gone?.to ?? 0)
  }

  end(channel: number): void {
    const span = this.#spans.find(one => one.channel === channel)
    if (span !== undefined) span.to = this.#now()
  }

  /** True when this execution, and no other, ran at that time. */
  isAlone(channel: number, at: Ticks): boolean {
    if (at <= this.#forgotten) return false
    const running = this.#spans.filter(({ from, to }) => from <= at && at <= to)
    return running.length === 1 && running[0]?.channel === channel
  }
}

const uptime = (): Ticks =>
  Math.floor(Number(readFileSync('/proc/uptime', 'latin1').split(' ')[0]) * PER_SECOND)
