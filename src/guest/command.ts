/** One command of the exec daemon, from its first byte to its end. Each stream has its own flow control. */
import { closeSync } from 'node:fs'
import { signal as sendSignal } from '../base/kernel/end-processes.ts'
import { tryCall } from '../base/kernel/system-call.ts'
import { encodeReport, type Report, type Stream } from '../protocol/exec-messages.ts'
import { MAX_PAYLOAD } from '../protocol/frame.ts'
import type { Outbox } from '../protocol/outbox.ts'
import { Allowance, Credit } from '../protocol/window.ts'
import type { Started } from './start-command.ts'

const SIGHUP = 1
const SIGCONT = 18
const TIOCGPGRP = 0x540f
const TIOCSWINSZ = 0x5414
const END_OF_INPUT = Uint8Array.of(4)

/**
 * A command may leave processes behind that hold its output open. Its end is reported when they have been silent for
 * this long. Later output is read, so that they do not block, and dropped.
 */
const SILENCE_MS = 100

export class Command {
  readonly #channel: number
  readonly #started: Started
  readonly #outbox: Outbox
  readonly #credit = { stdout: new Credit(), stderr: new Credit() }
  readonly #allowance = new Allowance()
  readonly #readers: { cancel(): Promise<void> }[] = []
  #granted: (() => void)[] = []
  #input: Promise<void> = Promise.resolve()
  #sink: Bun.FileSink | undefined
  #inputOpen: boolean = true
  #heard = 0
  #held = 0
  #endReported: boolean = false

  constructor(channel: number, started: Started, outbox: Outbox) {
    this.#channel = channel
    this.#started = started
    this.#outbox = outbox
  }

  get pid(): number {
    return this.#started.child.pid
  }

  /** Resolves when the end was reported. */
  async run(): Promise<void> {
    const flows = this.#started.outputs.map(({ stream, fd }) => this.#flow(stream, fd))
    const { child } = this.#started
    await child.exited
    await Promise.race([Promise.all(flows), this.#silence()])
    this.#endReported = true
    this.#wake()
    this.#closeInput()
    const channel = this.#channel
    const signal = child.signalCode === null ? undefined : signalNumber(child.signalCode)
    this.#say(
      signal === undefined
        ? { kind: 'exit', channel, how: 'exit', value: child.exitCode ?? 255 }
        : { kind: 'exit', channel, how: 'signal', value: signal },
    )
  }

  write(bytes: Uint8Array): void {
    this.#allowance.receive(bytes.length)
    this.#input = this.#input.then(() => this.#feed(bytes))
  }

  endInput(): void {
    // A terminal has no end of file, so send the EOF key.
    if (this.#started.terminal) this.#input = this.#input.then(() => this.#feed(END_OF_INPUT, 0))
    else this.#input = this.#input.then(() => this.#closeInput())
  }

  grant(stream: Stream, bytes: number): void {
    this.#credit[stream].grant(bytes)
    this.#wake()
  }

  resize(columns: number, rows: number): void {
    if (!this.#started.terminal || this.#endReported) return
    tryCall(
      'ioctl',
      this.#started.input,
      TIOCSWINSZ,
      new Uint8Array(new Uint16Array([rows, columns, 0, 0]).buffer),
    )
  }

  signal(signal: number): void {
    const { child, terminal, input } = this.#started
    sendSignal(-child.pid, signal)
    if (!terminal || signal !== SIGHUP || this.#endReported) return
    // Hang up: signal the terminal's foreground group. Later reads get an end of file.
    const group = new Int32Array(1)
    if (tryCall('ioctl', input, TIOCGPGRP, new Uint8Array(group.buffer)) >= 0 && (group[0] ?? 0) > 1)
      sendSignal(-(group[0] ?? 0), signal)
    sendSignal(-child.pid, SIGCONT)
    for (const reader of this.#readers) reader.cancel().catch(() => undefined)
  }

  async #flow(stream: Stream, fd: number): Promise<void> {
    const reader = Bun.file(fd).stream().getReader()
    this.#readers.push(reader)
    try {
      for (let next = await reader.read(); !next.done; next = await reader.read()) {
        this.#heard = performance.now()
        await this.#pass(stream, next.value)
      }
    } catch {
      // The terminal ends with EIO, when its last user has closed it.
    } finally {
      if (this.#started.terminal) this.#closeInput()
      closeSync(fd)
    }
  }

  async #pass(stream: Stream, bytes: Uint8Array): Promise<void> {
    const credit = this.#credit[stream]
    for (let at = 0; at < bytes.length && !this.#endReported; ) {
      if (credit.left === 0) {
        await this.#hold(new Promise(resolve => this.#granted.push(resolve)))
        continue
      }
      await this.#hold(this.#outbox.room())
      const piece = bytes.subarray(at, at + Math.min(MAX_PAYLOAD, credit.left))
      credit.spend(piece.length)
      this.#say({ kind: stream, channel: this.#channel, bytes: piece })
      at += piece.length
    }
  }

  async #hold(room: Promise<void> | undefined): Promise<void> {
    if (room === undefined) return
    this.#held++
    await room
    this.#held--
    this.#heard = performance.now()
  }

  async #silence(): Promise<void> {
    this.#heard = performance.now()
    for (let quiet = 0; quiet < SILENCE_MS; quiet = this.#held > 0 ? 0 : performance.now() - this.#heard) {
      if (this.#endReported) return
      await Bun.sleep(SILENCE_MS / 4)
    }
  }

  /** Input that a command does not read is accepted and dropped. Its exit code reports the problem. */
  async #feed(bytes: Uint8Array, owed = bytes.length): Promise<void> {
    if (this.#inputOpen && !this.#endReported)
      try {
        this.#sink ??= Bun.file(this.#started.input).writer({ highWaterMark: 1 })
        await this.#sink.write(bytes)
        await this.#sink.flush()
      } catch {
        this.#closeInput()
      }
    const granted = this.#allowance.use(owed)
    if (granted > 0 && !this.#endReported)
      this.#say({ kind: 'window', channel: this.#channel, bytes: granted })
  }

  #closeInput(): void {
    if (!this.#inputOpen) return
    this.#inputOpen = false
    try {
      void Promise.resolve(this.#sink?.end()).catch(() => undefined)
    } catch {
      // The pipe is already broken.
    }
    // On a terminal this descriptor is also the output, which may not have ended.
    if (!this.#started.terminal) closeSync(this.#started.input)
  }

  #say(report: Report): void {
    this.#outbox.send(encodeReport(report))
  }

  #wake(): void {
    const granted = this.#granted
    this.#granted = []
    for (const resolve of granted) resolve()
  }
}

/** By name, as in node:os. Real-time signals have none. The exec daemon's start does not load that module. */
const signalNumber = (signal: NodeJS.Signals | number): number =>
  typeof signal === 'number' ? signal : process.getBuiltinModule('node:os').constants.signals[signal]
