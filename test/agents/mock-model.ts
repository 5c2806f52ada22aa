/**
 * A model server for tests. It plays a scripted list of turns and records every request, so that a test asserts
 * on what the model received. Each protocol has a file (mock-anthropic.ts, mock-openai.ts, …) that encodes
 * turns and decodes tool results.
 */

/** The model's next action. A call names the tool as the request offers it. */
export type Turn = { readonly say: string } | { readonly call: readonly ToolCall[] }

export interface ToolCall {
  readonly name: string
  readonly input: Readonly<Record<string, unknown>>
}

export interface ModelRequest {
  readonly method: string
  readonly path: string
  readonly headers: Headers
  /** The JSON body, or an empty object. */
  readonly body: Readonly<Record<string, unknown>>
}

/** A tool result as it reached the model. */
export interface ToolOutcome {
  readonly id: string
  readonly text: string
}

export interface Protocol {
  /**
   * Whether the script answers this request. Requests for a title or a summary offer no tools and consume no
   * turn.
   */
  isTurn(request: ModelRequest): boolean
  /** Encodes one turn; `serial` makes ids unique. */
  play(request: ModelRequest, turn: Turn, serial: number): Response
  /** Other requests of the protocol, such as a list of models. Undefined means 404. */
  other(request: ModelRequest): Response | undefined
  toolNames(request: ModelRequest): readonly string[]
  toolOutcomes(request: ModelRequest): readonly ToolOutcome[]
}

export interface ListenAt {
  readonly hostname?: string
  readonly port?: number
  readonly tls?: { readonly cert: string; readonly key: string }
}

/** Bounds a client that never stops. */
const MOST_REQUESTS = 500
/** After the script the model has nothing to do, so the agent ends its run. */
const LAST_WORDS: Turn = { say: 'done' }

export class MockModel {
  readonly requests: ModelRequest[] = []
  readonly #protocol: Protocol
  readonly #turns: Turn[]
  readonly #server: Bun.Server<undefined>
  #serial = 0

  private constructor(protocol: Protocol, turns: readonly Turn[], at: ListenAt) {
    this.#protocol = protocol
    this.#turns = [...turns]
    this.#server = Bun.serve({
      hostname: at.hostname ?? '127.0.0.1',
      port: at.port ?? 0,
      ...(at.tls && { tls: at.tls }),
      idleTimeout: 120,
      fetch: request => this.answer(request),
    })
  }

  static open(protocol: Protocol, turns: readonly Turn[], at: ListenAt = {}): MockModel {
    return new MockModel(protocol, turns, at)
  }

  /** `http://127.0.0.1:PORT`, without a slash at the end. */
  get url(): string {
    return this.#server.url.href.replace(/\/$/, '')
  }

  /** The names of the tools that the last request offered. */
  get offered(): readonly string[] {
    const last = this.requests.findLast(request => this.#protocol.isTurn(request))
    return last === undefined ? [] : this.#protocol.toolNames(last)
  }

  /** Turns that were not played. A test that expects all of them checks for 0. */
  get unplayed(): number {
    return this.#turns.length
  }

  /** Every tool result that the model received, once each, in order. Clients repeat them in every later request. */
  get outcomes(): readonly ToolOutcome[] {
    const byId = new Map<string, ToolOutcome>()
    for (const request of this.requests)
      for (const outcome of this.#protocol.toolOutcomes(request))
        if (!byId.has(outcome.id)) byId.set(outcome.id, outcome)
    return [...byId.values()]
  }

  /** For tests with their own server. */
  async answer(request: Request): Promise<Response> {
    if (this.requests.length >= MOST_REQUESTS) return new Response('too many requests', { status: 429 })
    const heard: ModelRequest = {
      method: request.method,
      path: new URL(request.url).pathname,
      headers: request.headers,
      body: bodyOf(await request.text()),
    }
    this.requests.push(heard)
    if (!this.#protocol.isTurn(heard))
      return this.#protocol.other(heard) ?? new Response('not found', { status: 404 })
    this.#serial += 1
    return this.#protocol.play(heard, this.#turns.shift() ?? LAST_WORDS, this.#serial)
  }

  async close(): Promise<void> {
    await this.#server.stop(true)
  }
}

function bodyOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
  } catch {
    return {}
  }
}

/** A value of a protocol, with its `type`. */
export type Typed = { readonly type: string; readonly [field: string]: unknown }

/** Server-sent events, one per value; each value's `type` names its event. */
export function eventStream(events: readonly Typed[]): Response {
  const text = events.map(event => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  return new Response(text, {
    headers: { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' },
  })
}

/** The objects of a JSON array. Other values are dropped. */
export const objectsIn = (value: unknown): readonly Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) ? value.filter(item => typeof item === 'object' && item !== null) : []

/** The text of a tool result: a string, or blocks with a `text` each. A block without one is shown as its JSON. */
export const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : objectsIn(content)
        .map(({ text, ...rest }) => (typeof text === 'string' ? text : JSON.stringify(rest)))
        .join('\n')
