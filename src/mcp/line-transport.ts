/**
 * MCP over stdin and stdout: one JSON message per line. The SDK's transport ends the session at a long message and drops a malformed
 * one. This transport answers both, and tracks which requests are unanswered.
 */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { ErrorCode, type JSONRPCMessage } from '@modelcontextprotocol/sdk/types.js'
import { type Id, judgeMessage } from './judge-message.ts'
import { TopLevelId } from './top-level-id.ts'

/** Enough for the longest write_file with JSON escapes. */
export const MAX_MESSAGE = 16 * 2 ** 20

const NEWLINE = 0x0a

export class LineTransport implements Transport {
  onmessage?: NonNullable<Transport['onmessage']>
  onclose?: () => void
  /** Called when the client closes our stdin, or stops reading our stdout. */
  onend: () => void = () => undefined
  readonly #input: NodeJS.ReadableStream
  readonly #output: NodeJS.WritableStream
  readonly #maxLength: number
  #line: Uint8Array[] = []
  #size = 0
  /** Set while the rest of a line that is too long is skipped. */
  #skipped: TopLevelId | undefined
  readonly #unanswered = new Set<Id>()
  #whenIdle: (() => void)[] = []

  constructor(
    input: NodeJS.ReadableStream = process.stdin,
    output: NodeJS.WritableStream = process.stdout,
    maxLength = MAX_MESSAGE,
  ) {
    this.#input = input
    this.#output = output
    this.#maxLength = maxLength
  }

  start(): Promise<void> {
    this.#input.on('data', (chunk: Uint8Array) => this.#read(chunk))
    this.#input.once('end', () => this.onend())
    this.#output.once('error', () => this.onend())
    return Promise.resolve()
  }

  send(message: JSONRPCMessage): Promise<void> {
    return new Promise(resolve => {
      this.#output.write(`${JSON.stringify(message)}\n`, () => {
        if ('id' in message && !('method' in message)) this.#settle(message.id)
        resolve()
      })
    })
  }

  close(): Promise<void> {
    this.#input.removeAllListeners('data')
    this.#input.pause()
    this.onclose?.()
    return Promise.resolve()
  }

  /** Resolves when every request is answered or cancelled. */
  idle(): Promise<void> {
    if (this.#unanswered.size === 0) return Promise.resolve()
    return new Promise(resolve => this.#whenIdle.push(resolve))
  }

  #settle(id: Id | undefined): void {
    if (id !== undefined) this.#unanswered.delete(id)
    if (this.#unanswered.size === 0) for (const done of this.#whenIdle.splice(0)) done()
  }

  #read(chunk: Uint8Array): void {
    for (let rest = chunk; rest.length > 0; ) {
      const end = rest.indexOf(NEWLINE)
      this.#append(end < 0 ? rest : rest.subarray(0, end))
      if (end < 0) return
      rest = rest.subarray(end + 1)
      this.#endLine()
    }
  }

  #append(bytes: Uint8Array): void {
    if (this.#skipped !== undefined) {
      this.#skipped.push(bytes)
      return
    }
    this.#line.push(bytes)
    this.#size += bytes.length
    if (this.#size <= this.#maxLength) return
    this.#skipped = new TopLevelId()
    for (const piece of this.#line) this.#skipped.push(piece)
    this.#line = []
  }

  #endLine(): void {
    const bytes = Buffer.concat(this.#line)
    const skipped = this.#skipped
    this.#line = []
    this.#size = 0
    this.#skipped = undefined
    if (skipped !== undefined) {
      const what = `the message is longer than ${this.#maxLength} bytes; write long files in parts with run`
      this.#refuse(skipped.found ?? null, ErrorCode.InvalidRequest, what)
    } else if (bytes.some(byte => byte > 0x20)) this.#take(bytes)
  }

  #take(bytes: Uint8Array): void {
    let value: unknown
    try {
      value = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    } catch {
      const id = new TopLevelId().push(bytes).found ?? null
      this.#refuse(id, ErrorCode.ParseError, 'the line is not valid JSON in UTF-8')
      return
    }
    // Revision 2025-03-26 of the protocol has batches. Each message gets its own answer line.
    if (Array.isArray(value) && value.length > 0) for (const one of value) this.#judge(one)
    else this.#judge(value)
  }

  #judge(value: unknown): void {
    const verdict = judgeMessage(value)
    if ('refuse' in verdict) {
      const { id, code, message } = verdict.refuse
      this.#refuse(id, code, message)
    }
    if (!('pass' in verdict)) return
    const { pass, request } = verdict
    if (request !== undefined) {
      if (this.#unanswered.has(request)) {
        // The first request continues. Two requests with one id could not be matched to answers or cancelled.
        const what = 'another request with this id is unanswered; use a new id for each request'
        this.#refuse(request, ErrorCode.InvalidRequest, what)
        return
      }
      this.#unanswered.add(request)
    }
    const cancelled = cancelledBy(pass)
    this.onmessage?.(pass)
    // A cancelled request is never answered.
    if (cancelled !== undefined) this.#settle(cancelled)
  }

  /** Settles nothing: an accepted request may have the same id, and continues. */
  #refuse(id: Id | null, code: ErrorCode, message: string): void {
    this.#output.write(`${JSON.stringify({ jsonrpc: '2.0', id, error: { code, message } })}\n`)
  }
}

function cancelledBy(message: JSONRPCMessage): Id | undefined {
  if (!('method' in message) || message.method !== 'notifications/cancelled') return undefined
  const id = message.params?.['requestId']
  return typeof id === 'string' || typeof id === 'number' ? id : undefined
}
