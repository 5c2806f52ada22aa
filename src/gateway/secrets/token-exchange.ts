/**
 * One request to a token endpoint of OAuth. In its body placeholders become tokens, and in its answer tokens become
 * placeholders. The answer is parsed and written again, so that what pen did not understand cannot pass.
 */
import type { Field } from '../http/field.ts'
import type { Refusal } from '../refusal.ts'
import { AnswerScan } from './answer-scan.ts'
import type { Tokens } from './tokens.ts'

/** Keys of an answer that hold a token. Claude's endpoint for API keys calls one `raw_key`. */
const HOLDS_TOKEN = /^(?:(?:access|refresh|id)_?token|raw_?key)$/i

/** Tokens are long. Anything else under such a key is not understood. */
const TOKEN = /^[\x21-\x7e]{16,8192}$/

export class TokenExchange {
  readonly #tokens: Tokens
  /** The secret that the tokens belong to. */
  readonly name: string

  /** Whether its body may have tokens: at the token endpoint only. */
  readonly mayCarry: boolean
  /** The tokens that were put into the request. */
  readonly #sent = new Set<string>()

  constructor(tokens: Tokens, name: string, mayCarry: boolean) {
    this.#tokens = tokens
    this.name = name
    this.mayCarry = mayCarry
  }

  /** Placeholder and token have one length, in every encoding: only letters and digits differ. */
  request(body: Buffer): Buffer {
    let text = body.toString('latin1')
    for (const { name, placeholder, value } of this.#tokens.all()) {
      if (name !== this.name) continue
      const before = text
      text = text
        .replaceAll(placeholder, () => value)
        .replaceAll(encodeURIComponent(placeholder), () => encodeURIComponent(value))
      if (text === before) continue
      this.#sent.add(value)
      // It is in use: newer ones do not take its place.
      this.#tokens.keep(name, value)
    }
    return Buffer.from(text, 'latin1')
  }

  /** The user removed the sign-in while the server answered. Its renewed tokens must not be stored again. */
  get wasRemoved(): boolean {
    const kept = new Set(this.#tokens.all().map(({ value }) => value))
    return [...this.#sent].some(value => !kept.has(value))
  }

  /** Undefined when a successful answer cannot be read. Errors have no tokens, and may be any text. */
  answer(status: number, body: Buffer): Buffer | undefined {
    const parsed = parse(body)
    if (parsed === undefined) return status >= 400 || body.length === 0 ? this.#clean(body) : undefined
    const swapped = this.#swap(parsed.value)
    return swapped === undefined ? undefined : this.#clean(Buffer.from(JSON.stringify(swapped.value)))
  }

  /** Undefined when a value is no token. */
  #swap(value: unknown, depth = 0): { readonly value: unknown } | undefined {
    if (depth > 32) return undefined
    if (typeof value !== 'object' || value === null) return { value }
    const out: [string, unknown][] = []
    for (const [key, item] of Object.entries(value)) {
      const isToken = HOLDS_TOKEN.test(key) && item !== null
      if (isToken && (typeof item !== 'string' || !TOKEN.test(item))) return undefined
      const swapped = isToken ? this.#keep(String(item)) : this.#swap(item, depth + 1)
      if (swapped === undefined) return undefined
      out.push([key, swapped.value])
    }
    return { value: Array.isArray(value) ? out.map(([, item]) => item) : Object.fromEntries(out) }
  }

  #keep(token: string): { readonly value: string } | undefined {
    const placeholder = this.#tokens.keep(this.name, token)
    return placeholder === undefined ? undefined : { value: placeholder }
  }

  /** A token of the answer may be in its head too, such as in a cookie. */
  cleanFields(fields: readonly Field[]): Field[] {
    const scan = new AnswerScan(this.#tokens.seen())
    return fields.map(field => ({ ...field, value: scan.text(field.value) }))
  }

  /** A token may be repeated under another key, or as the request had it: percent-encoded, or in base64. */
  #clean(body: Buffer): Buffer {
    const scan = new AnswerScan(this.#tokens.seen())
    return Buffer.from(scan.text(body.toString('latin1')), 'latin1')
  }
}

function parse(body: Buffer): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(body.toString('utf8')) as unknown }
  } catch {
    return undefined
  }
}

export const notExchanged = (why: string): Refusal => ({
  reason: 'not-exchanged',
  why: `pen cannot look for tokens in this request to a sign-in server: ${why}`,
  fix: 'use the sign-in of the agent itself',
})
