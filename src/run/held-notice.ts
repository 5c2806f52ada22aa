/**
 * Tells the person that a connection waits. The sandbox owns the screen: whatever is drawn there it could have drawn itself, so
 * nothing is asked and no key is read there. The line names the command that answers, to be typed where no sandbox draws. While a program
 * draws on the screen there is no line at all: a bell, the desktop and `pen watch` tell it, and one line at the end.
 */
import { existsSync } from 'node:fs'
import type { AuditEventInput, AuditSink } from '../audit/event.ts'
import { findTool } from '../base/find-tool.ts'
import { endOf } from '../base/printable.ts'
import { capture } from '../base/spawn.ts'
import type { Screen } from '../terminal/screen.ts'

export interface HeldNoticeOptions {
  readonly tell: (line: string) => void
  readonly env: Readonly<Record<string, string | undefined>>
  /** As pen names the sandbox: no text of a project's. */
  readonly sandbox: string
  /** Where `tell` writes. */
  readonly screen?: Screen
  readonly now?: () => number
  readonly notify?: (title: string, body: string) => void
}

/** A program that dials again and again is told of once in a while, and all together not faster than a person reads. */
const SAME_AGAIN_MS = 60_000
const NOT_FASTER_MS = 2000
const MOST_KNOWN = 1000
const MOST_SUMMED = 5
/** A desktop cuts a long text at its end, where a host name says whose it is. */
const MOST_NOTIFIED = 64

export class HeldNotice implements AuditSink {
  readonly #sink: AuditSink
  readonly #options: HeldNoticeOptions
  readonly #told = new Map<string, number>()
  /** Held while a program had the screen, in order. */
  readonly #silent = new Set<string>()
  #last = -Infinity

  constructor(sink: AuditSink, options: HeldNoticeOptions) {
    this.#sink = sink
    this.#options = options
  }

  record(event: AuditEventInput): void {
    this.#sink.record(event)
    if (event.kind !== 'connection-held') return
    // Canonical: nothing in it was spelled by the sandbox.
    const place = event.name ?? event.address ?? ''
    this.#say(`${place.includes(':') ? `[${place}]` : place}:${event.port}`)
  }

  /** For the end, when the screen is the person's again. */
  summary(): string[] {
    const all = [...this.#silent]
    if (all.length === 0) return []
    const more = all.length > MOST_SUMMED ? ` and ${all.length - MOST_SUMMED} more` : ''
    return [
      `held: ${all.slice(0, MOST_SUMMED).join(', ')}${more} waited for you while a program had the screen; keep pen watch open in another terminal to answer`,
    ]
  }

  #say(target: string): void {
    const { tell, sandbox, screen, now = () => performance.now() } = this.#options
    const at = now()
    const isFullScreen = screen?.isFullScreen() === true
    if (isFullScreen && this.#silent.size < MOST_KNOWN) this.#silent.add(target)
    if (at - (this.#told.get(target) ?? -Infinity) < SAME_AGAIN_MS || at - this.#last < NOT_FASTER_MS) return
    if (this.#told.size >= MOST_KNOWN) this.#told.clear()
    this.#told.set(target, at)
    this.#last = at
    if (isFullScreen) screen?.ring()
    else
      tell(`held: ${target} waits for you. In another terminal: pen watch, or pen allow ${target} --session`)
    const notify = this.#options.notify ?? ((title, body) => this.#notify(title, body))
    notify(
      'A sandbox asks to connect',
      `${endOf(target, MOST_NOTIFIED)}, for ${sandbox}. Answer with pen watch.`,
    )
  }

  /** To the user's own desktop, if there is one. Whether it was shown nobody needs to know. */
  #notify(title: string, body: string): void {
    const env = desktopOf(this.#options.env)
    const tool = env === undefined ? undefined : findTool('notify-send')
    if (tool === undefined || env === undefined) return
    const argv = [tool, '--app-name=pen', '--', title, body]
    capture(argv, { env, timeoutMs: NOT_FASTER_MS }).catch(() => undefined)
  }
}

const DESKTOP = ['DBUS_SESSION_BUS_ADDRESS', 'XDG_RUNTIME_DIR', 'DISPLAY', 'WAYLAND_DISPLAY']

function desktopOf(env: HeldNoticeOptions['env']): Record<string, string> | undefined {
  const known = DESKTOP.flatMap(name => {
    const value = env[name]
    return value === undefined ? [] : [[name, value] as const]
  })
  const { DBUS_SESSION_BUS_ADDRESS: address, XDG_RUNTIME_DIR: directory } = env
  // Where the address is not told, it is this one.
  const isThere = address !== undefined || (directory !== undefined && existsSync(`${directory}/bus`))
  return isThere ? Object.fromEntries(known) : undefined
}
