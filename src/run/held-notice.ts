/**
 * Tells the user that a connection is held. The sandbox could draw the same text, so pen asks nothing and reads no key on this screen:
 * the line names a command for another terminal. While a program draws on the whole screen, pen prints nothing. It
 * rings the bell and sends a desktop notification, `pen watch` shows the connection, and one line comes at the end.
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
  /** pen's name of the sandbox. It holds no text from the project. */
  readonly sandbox: string
  /** The screen that `tell` writes to. */
  readonly screen?: Screen
  readonly now?: () => number
  readonly notify?: (title: string, body: string) => void
}

/** Repeated connections are reported rarely, and all together not faster than a person reads. */
const SAME_AGAIN_MS = 60_000
const NOT_FASTER_MS = 2000
const MOST_KNOWN = 1000
const MOST_SUMMED = 5
/** Desktops cut long texts at the end, which is the part of a host name that names its owner. */
const MOST_NOTIFIED = 64

export class HeldNotice implements AuditSink {
  readonly #sink: AuditSink
  readonly #options: HeldNoticeOptions
  readonly #told = new Map<string, number>()
  /** Targets that were held while a program owned the screen, in order. */
  readonly #silent = new Set<string>()
  #last = -Infinity

  constructor(sink: AuditSink, options: HeldNoticeOptions) {
    this.#sink = sink
    this.#options = options
  }

  record(event: AuditEventInput): void {
    this.#sink.record(event)
    if (event.kind !== 'connection-held') return
    // The canonical form: the sandbox chose no character of it.
    const place = event.name ?? event.address ?? ''
    const target = `${place.includes(':') ? `[${place}]` : place}:${event.port}`
    // Only a plain path is held.
    this.#say(event.method === undefined ? target : `${event.method} ${target}${event.path ?? ''}`)
  }

  /** Printed at the end, when the user has the screen back. */
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
    const word = target.includes(' ') ? `'${target}'` : target
    if (isFullScreen) screen?.ring()
    else tell(`held: ${target} waits for you. In another terminal: pen watch, or pen allow ${word} --session`)
    const notify = this.#options.notify ?? ((title, body) => this.#notify(title, body))
    notify(
      'A sandbox asks to connect',
      `${target.includes(' ') ? target.slice(0, MOST_NOTIFIED) : endOf(target, MOST_NOTIFIED)}, for ${sandbox}. Answer with pen watch.`,
    )
  }

  /** Sends a desktop notification, if there is a desktop. Failures are ignored. */
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
  // The default address of the session bus.
  const isThere = address !== undefined || (directory !== undefined && existsSync(`${directory}/bus`))
  return isThere ? Object.fromEntries(known) : undefined
}
