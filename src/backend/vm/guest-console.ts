/**
 * What the guest's kernel and QEMU print. It is hostile, so only its end is held, to say why a guest did not start. It
 * is never shown as it is.
 */
import { closeSync } from 'node:fs'
import { pipe } from '../../base/kernel/descriptor.ts'
import { printable } from '../../base/printable.ts'

const HELD = 2048

export class GuestConsole {
  /** QEMU's standard output. */
  readonly writer: number
  readonly #read: Promise<void>
  #end = ''
  #onData = (): void => undefined
  #writerOpen: boolean = true

  constructor() {
    const [reader, writer] = pipe()
    this.writer = writer
    this.#read = this.#readAll(reader)
  }

  /** Resolves when the guest has printed this line, or when QEMU has ended. */
  async saw(line: string): Promise<void> {
    const seen = Promise.withResolvers<void>()
    this.#onData = () => (this.#lines().includes(line) ? seen.resolve() : undefined)
    this.#onData()
    await Promise.race([seen.promise, this.#read])
    this.#onData = () => undefined
  }

  /** Closes pen's copy, after QEMU has its own. */
  closeWriter(): void {
    if (this.#writerOpen) closeSync(this.writer)
    this.#writerOpen = false
  }

  /** Whether one of the last lines is this one. Call it when QEMU has ended. */
  async said(line: string): Promise<boolean> {
    await this.#read
    return this.#lines().includes(line)
  }

  /** The last line that says something. Call it when QEMU has ended. */
  async lastLine(): Promise<string> {
    await this.#read
    const lines = this.#lines()
    const own = lines.findLast(line => line.startsWith('pen: ') || line.includes('qemu-system'))
    return printable(own ?? lines.at(-1) ?? 'its console is empty', 200)
  }

  #lines(): string[] {
    return this.#end.split(/[\r\n]+/).filter(line => line.trim() !== '')
  }

  async #readAll(reader: number): Promise<void> {
    try {
      const decoder = new TextDecoder('latin1')
      for await (const bytes of Bun.file(reader).stream() as AsyncIterable<Uint8Array>) {
        this.#end = `${this.#end}${decoder.decode(bytes)}`.slice(-HELD)
        this.#onData()
      }
    } catch {
      // QEMU has ended.
    } finally {
      closeSync(reader)
    }
  }
}
