/**
 * The end of what a program prints: QEMU, virtiofsd, or the guest on its console. A guest may be behind all of it, so it
 * is hostile. It only says why a machine did not start, and it is never shown as it is.
 */
import { closeSync } from 'node:fs'
import { pipe } from '../../base/kernel/descriptor.ts'
import { printable } from '../../base/printable.ts'

const HELD = 2048

export class LastOutput {
  /** The program's output. */
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

  /** Resolves when this line was printed, or when the program has ended. */
  async saw(line: string): Promise<void> {
    const seen = Promise.withResolvers<void>()
    this.#onData = () => (this.#lines().includes(line) ? seen.resolve() : undefined)
    this.#onData()
    await Promise.race([seen.promise, this.#read])
    this.#onData = () => undefined
  }

  /** Closes pen's copy, after the program has its own. */
  closeWriter(): void {
    if (this.#writerOpen) closeSync(this.writer)
    this.#writerOpen = false
  }

  /** Whether one of the last lines is this one. Call it when the program has ended. */
  async said(line: string): Promise<boolean> {
    await this.#read
    return this.#lines().includes(line)
  }

  /** The last lines that say something, as one. Call it when the program has ended. */
  async lastLines(most: number): Promise<string> {
    await this.#read
    return this.#lines()
      .slice(-most)
      .map(line => printable(line.trim(), 160))
      .join(' / ')
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
      // The program has ended.
    } finally {
      closeSync(reader)
    }
  }
}
