/** The interactive screen of `pen watch`. */
import type { AuditRecord } from '../../audit/read.ts'
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import type { Project } from '../../config/project.ts'
import { requestValue } from '../../control/client.ts'
import type { SandboxStatus } from '../../run/status.ts'
import type { Paint } from '../render/colour.ts'
import { serverText } from '../render/server-text.ts'
import { answer } from './answer.ts'
import { screenLines } from './screen.ts'
import { type HeldTarget, type RefusedTarget, WatchState } from './state.ts'
import { type Key, WatchTerminal } from './terminal.ts'

/** Keys are ignored right after the selection changes, so that a key meant for one target does not answer another. */
const ARMED_AFTER_MS = 700
const REDRAW_MS = 1000
const SERVERS_MS = 2000
/** The lifetime of a one-time rule for a refused connection, as with `pen allow --once`. */
const ONCE_MS = 600_000

export class WatchScreen {
  readonly #project: Project
  readonly #paint: Paint
  readonly #state = new WatchState()
  readonly #ending = new AbortController()
  readonly #terminal: WatchTerminal
  #selected: string | undefined
  #armedAt = Infinity
  #message = ''
  #servers: string | undefined

  constructor(project: Project, paint: Paint) {
    this.#project = project
    this.#paint = paint
    this.#terminal = new WatchTerminal({
      key: key => this.#pressed(key),
      end: () => this.#ending.abort(),
      resized: () => this.#draw(),
    })
  }

  get ending(): AbortSignal {
    return this.#ending.signal
  }

  /** `records` ends when `ending` aborts. */
  async untilEnd(records: AsyncGenerator<AuditRecord[]>): Promise<void> {
    const ticking = setInterval(() => this.#draw(), REDRAW_MS)
    const looking = setInterval(() => void this.#lookForServers(), SERVERS_MS)
    try {
      this.#draw()
      for await (const batch of records) {
        if (this.ending.aborted) return
        for (const record of batch) this.#state.add(record)
        this.#draw()
      }
    } finally {
      clearInterval(ticking)
      clearInterval(looking)
      this.#terminal.close()
    }
  }

  /** A sandbox of `pen run` has no control socket, and nothing to show. */
  async #lookForServers(): Promise<void> {
    const asked = await requestValue(this.#project.stateDir, 'status').catch(() => undefined)
    this.#servers = asked && serverText(asked.value as SandboxStatus)
  }

  #draw(): void {
    if (this.#ending.signal.aborted) return
    const now = Date.now()
    // Only waiting connections are selected automatically. The user selects refused ones.
    if (!this.#choices(now).some(({ key }) => key === this.#selected))
      this.#select(this.#state.held(now)[0]?.key)
    this.#terminal.draw(
      screenLines({
        state: this.#state,
        ...this.#terminal.size,
        now,
        project: this.#project.id,
        selected: this.#selected,
        isArmed: performance.now() >= this.#armedAt,
        message: this.#message,
        servers: this.#servers,
        paint: this.#paint,
      }),
    )
  }

  /** Waiting connections first. */
  #choices(now: number): readonly (HeldTarget | RefusedTarget)[] {
    return [...this.#state.held(now), ...this.#state.refused()]
  }

  #select(key: string | undefined): void {
    if (key === this.#selected) return
    this.#selected = key
    this.#disarm()
  }

  #disarm(): void {
    this.#armedAt = performance.now() + ARMED_AFTER_MS
    setTimeout(() => this.#draw(), ARMED_AFTER_MS + 1)
  }

  #pressed(key: Key): void {
    if (key === 'quit') {
      this.#ending.abort()
      return
    }
    const choices = this.#choices(Date.now())
    const at = choices.findIndex(target => target.key === this.#selected)
    if (key === 'up' || key === 'down') {
      const next = at + (key === 'up' ? -1 : 1)
      this.#select(choices[Math.max(0, Math.min(choices.length - 1, next))]?.key)
      this.#draw()
      return
    }
    const target = choices[at]
    if (target === undefined || performance.now() < this.#armedAt) return
    this.#disarm()
    if (!('until' in target) && key === 'not now') return
    const until = 'until' in target ? target.until : Date.now() + ONCE_MS
    void answer(this.#project, { ...target, until }, key)
      .catch(describe)
      .then(message => {
        this.#message = printable(message, 300).replaceAll(/[^ -~]/g, '?')
        this.#draw()
      })
  }
}

function describe(error: unknown): string {
  if (!(error instanceof PenError)) return String(error)
  return error.hint === undefined ? error.message : `${error.message}: ${error.hint}`
}
