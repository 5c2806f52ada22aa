/** What happened at protected and denied places, as lines for the user. Paths and reasons are hostile text. */
import { printable } from '../base/printable.ts'
import { type Back, isUndone, type Moved, type QuarantineEvent, type Stuck } from './quarantine-event.ts'
import type { HoldEvent } from './remount.ts'
import { ASIDE } from './watch-record.ts'

const MAX_LINES = 20

/** Collects events, and says each thing once, however often it happened. */
export class PlaceReport {
  readonly #tell: (line: string) => void
  readonly #lost = new Map<string, string>()
  readonly #held = new Map<string, { event: HoldEvent; times: number }>()
  #count = 0
  #undone = 0

  constructor(tell: (line: string) => void) {
    this.#tell = tell
  }

  event(event: QuarantineEvent): void {
    if (event.kind === 'moved') this.#lost.delete(event.path)
    if (event.kind === 'lost') this.#lost.set(event.path, lostInWords(event.path, event.gone))
    // What pen could not look at or move is reported however many other lines there are.
    else if (isUndone(event) ? this.#undone++ < MAX_LINES : this.#count++ < MAX_LINES)
      this.#tell(inWords(event))
  }

  holdEvent(event: HoldEvent): void {
    const key = `${event.how} ${event.path}`
    this.#held.set(key, { event, times: (this.#held.get(key)?.times ?? 0) + 1 })
    if (event.how === 'protect' && event.result === 'held') this.#lost.delete(event.path)
  }

  /** The summaries. */
  finish(): void {
    if (this.#count > MAX_LINES) this.#tell(andMore(this.#count - MAX_LINES, 'things at protected places'))
    if (this.#undone > MAX_LINES)
      this.#tell(`… and ${this.#undone - MAX_LINES} more that could not be moved: look for ${ASIDE}*`)
    const held = [...this.#held.values()]
    for (const { event, times } of held.slice(0, MAX_LINES)) this.#tell(heldInWords(event, times))
    if (held.length > MAX_LINES) this.#tell(andMore(held.length - MAX_LINES, 'such places'))
    for (const line of this.#lost.values()) this.#tell(line)
  }
}

export const TOO_SLOW =
  'places: pen could not look at all protected and denied places in time, and ended the sandbox: "pen logs --all" shows what was made'

export const ownLost = (path: string): string =>
  `git: ${printable(path, 1024)} was removed or replaced on the host; the sandbox has its own there, and was ended`

export const rootLost = (path: string): string =>
  `places: ${printable(path, 1024)} was moved, replaced or removed on the host, where pen cannot protect it; the sandbox was ended`

export const TOO_OFTEN =
  'places: the sandbox put something at protected places again and again; the sandbox was ended'

export const STUCK = 'places: something at a protected place could not be moved away; the sandbox was ended'

const andMore = (count: number, what: string): string =>
  `… and ${count} more ${what}: "pen logs --all" has them`

function heldInWords({ how, path, result }: HoldEvent, times: number): string {
  const often = times === 1 ? '' : ` (${times} times)`
  const where = printable(path, 1024)
  if (how === 'cover')
    return result === 'held'
      ? `denied: ${where} appeared or was replaced while the sandbox ran, and was covered${often}. If the sandbox made it, remove it before you put a secret there`
      : `denied: ${where} appeared or was replaced while the sandbox ran and could not be covered (${printable(result.failed, 200)}): the sandbox could read it`
  return result === 'held'
    ? `protected: ${where} was replaced on the host while the sandbox ran, and is held again${often}; for a moment the sandbox could write it`
    : `protected: ${where} was replaced on the host while the sandbox ran and could not be held again (${printable(result.failed, 200)}): look at it before you trust it`
}

function inWords(event: Moved | Stuck | Back): string {
  const path = printable(event.path, 1024)
  switch (event.kind) {
    case 'moved':
      if (event.mayBeUsers)
        return `protected: ${path} was removed or replaced on the host while the sandbox ran. The ${event.what} that appeared there may be the sandbox's, and was moved to ${printable(event.to, 1024)}: when the sandbox has ended, look at it and move it back`
      return `protected: ${path} appeared (${event.what}) and was moved to ${printable(event.to, 1024)}${event.restored ? '; what stood there before is back' : ''}`
    case 'back':
      return `protected: the link ${path} was removed, and was put back`
    case 'unseen':
      return `protected: pen could not look at all of ${path} (${printable(event.why, 200)}): look at it before you trust it`
    case 'stuck':
      return event.aside === undefined
        ? `protected: ${path} could not be moved away (${printable(event.why, 200)}): look at it before you trust it`
        : `protected: ${path} could not be moved away (${printable(event.why, 200)}) and was renamed: look at ${printable(event.aside, 1024)}, ${event.mayBeUsers === true ? 'which may be yours, or the sandbox wrote to it' : 'then remove it'}`
  }
}

const lostInWords = (path: string, gone: boolean): string =>
  `protected: ${printable(path, 1024)} was ${gone ? 'removed' : 'replaced'} on the host while the sandbox ran: until it is restarted, it is held by watching only`
