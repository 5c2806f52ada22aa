/**
 * A file call of the library or of an MCP server, done by the gate. They request pen's file tool as a command, as in
 * every sandbox. Here no process starts for it, so the output is the supervisor's own and trusted.
 */
import { PenError } from '../../base/error.ts'
import { ownProgram } from '../../base/own-program.ts'
import {
  FILE_MODE,
  type FileOrder,
  MAX_SEARCHED,
  type PlainFileOrder,
  type SearchOrder,
  SKIPPED_DIRECTORIES,
  writeFileOrder,
} from '../../protocol/file-order.ts'
import type { ExecEnding, ExecOutput, Execution } from '../backend.ts'
import type { Exec } from './exec-daemon.ts'
import { ActionFailed, type Gate, Refused } from './gate/gate.ts'

const DONE: ExecEnding = { kind: 'exit', code: 0 }
const FAILED: ExecEnding = { kind: 'exit', code: 1 }
/** A write is buffered until it is complete. */
const MAX_WRITTEN = 64 * 2 ** 20
const PIECE = 64 * 1024

export class FileCall implements Execution {
  readonly ended: Promise<ExecEnding>
  readonly #gate: Gate
  readonly #exec: Exec
  readonly #output: ExecOutput
  readonly #input: Uint8Array[] = []
  readonly #whole = Promise.withResolvers<void>()
  #size = 0
  #searching: Execution | undefined
  #isKilled: boolean = false

  constructor(gate: Gate, exec: Exec, order: FileOrder, output: ExecOutput) {
    this.#gate = gate
    this.#exec = exec
    this.#output = output
    this.ended = this.#perform(order)
  }

  async write(bytes: Uint8Array): Promise<void> {
    this.#size += bytes.length
    if (this.#size <= MAX_WRITTEN) this.#input.push(bytes.slice())
  }

  endInput(): void {
    this.#whole.resolve()
  }

  resize(): void {
    // A file call has no terminal.
  }

  signal(): void {
    this.kill()
  }

  kill(): void {
    this.#isKilled = true
    this.#searching?.kill()
    this.#whole.resolve()
  }

  async #perform(order: FileOrder): Promise<ExecEnding> {
    try {
      if (order.op === 'match')
        throw new ActionFailed('EINVAL', { what: 'it opens nothing', at: '', hint: 'search' })
      if (order.op === 'search') return await this.#search(order)
      await this.#act(order)
      return this.#isKilled ? { kind: 'signal', signal: 9 } : DONE
    } catch (error) {
      const failure = describeFailure(error)
      if (failure === undefined) throw error
      await this.#say('stderr', failure)
      return FAILED
    }
  }

  async #act(order: PlainFileOrder): Promise<void> {
    const { path } = order
    switch (order.op) {
      case 'read': {
        const { from, length } = order
        const { bytes, truncated } = await this.#gate.read(path, { from, maxBytes: length })
        // The policy's limit cut the file. The caller must not take it for the whole.
        if (truncated && bytes.length < length) throw fileTooLong(path)
        for (let at = 0; at < bytes.length && !this.#isKilled; at += PIECE)
          await this.#output('stdout', bytes.subarray(at, at + PIECE))
        break
      }
      case 'write':
        await this.#whole.promise
        if (this.#isKilled) return
        if (this.#size > MAX_WRITTEN) throw fileTooLong(path)
        await this.#gate.write(path, Buffer.concat(this.#input), order.executable)
        break
      case 'delete':
        await this.#gate.delete(path, { recursive: order.recursive })
        break
      case 'list': {
        const { entries, more } = await this.#gate.list(path, order.most)
        for (const { name, kind, size } of entries)
          await this.#say('stdout', { name, kind, size: kind === 'file' ? size : null })
        if (more > 0) await this.#say('stdout', { more })
      }
    }
  }

  /**
   * The gate opens the files that may be read. The expression comes from a model and may run forever, so it runs below
   * the exec daemon, which opens nothing.
   */
  async #search({ path, pattern, ignoreCase, name, most }: SearchOrder): Promise<ExecEnding> {
    const found = this.#gate.below(path, { skip: SKIPPED_DIRECTORIES, mostBytes: MAX_SEARCHED })
    // Throws when the path itself may not be read.
    let next = found.next()
    const words = writeFileOrder({ op: 'match', pattern, ignoreCase, name, most })
    const searching = this.#exec(
      { argv: [...ownProgram(), FILE_MODE, words], cwd: '/', env: [], terminal: undefined },
      (stream, bytes) => (stream === 'stdout' ? this.#output(stream, bytes) : undefined),
    )
    this.#searching = searching
    let isOver: boolean = false
    const ended = searching.ended.finally(() => {
      isOver = true
    })
    try {
      for (; next.done !== true && !isOver && !this.#isKilled; next = found.next()) {
        if (!mayMatch(next.value.path, name)) continue
        const bytes = pattern === '' ? new Uint8Array() : next.value.read()
        if (bytes === undefined) continue
        if (bytes === 'too long') {
          await this.#say('stdout', { fileTooLong: next.value.path })
          continue
        }
        const head = Buffer.from(`${JSON.stringify({ path: next.value.path, size: bytes.length })}\n`)
        await Promise.race([searching.write(Buffer.concat([head, bytes])), ended])
      }
      searching.endInput()
      const ending = await ended
      if (ending.kind !== 'exit' || ending.code === 0) return ending
      throw new ActionFailed('EINVAL', {
        what: 'it is not a regular expression',
        at: pattern,
        hint: 'check it',
      })
    } catch (error) {
      searching.kill()
      throw error
    } finally {
      found.return(undefined)
    }
  }

  async #say(stream: 'stdout' | 'stderr', value: object): Promise<void> {
    await this.#output(stream, Buffer.from(`${JSON.stringify(value)}\n`))
  }
}

/** A cheap test. The full match runs in a process that can be killed. */
function mayMatch(path: string, name: string): boolean {
  if (!/[*?]/.test(name)) return path.includes(name)
  const [, ending] = /^\*(\.\w+)$/.exec(name) ?? []
  return ending === undefined || path.endsWith(ending)
}

const fileTooLong = (at: string): ActionFailed =>
  new ActionFailed('EFBIG', { what: 'it is too long', at, hint: 'read or write it in parts' })

/** The failure in the format of pen's file tool. A refusal adds its reason and fix. Undefined for a bug of pen. */
function describeFailure(error: unknown): object | undefined {
  if (error instanceof Refused) {
    const { reason, why, hint } = error
    return { errno: 'EACCES', refused: { reason, why, fix: hint ?? '' } }
  }
  if (error instanceof ActionFailed) return { errno: error.errno }
  if (error instanceof PenError && error.code === 'LIMIT') return { errno: 'EFBIG' }
  return undefined
}
