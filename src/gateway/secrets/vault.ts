/**
 * The values of secrets, for as long as the gateway runs, and their replacement in requests. The head of a request is
 * hostile: a program inside may put a placeholder anywhere. It is replaced only in the fields and for the hosts that the
 * user named. Everywhere else the request is refused.
 */
import { PenError } from '../../base/error.ts'
import type { Dial } from '../../policy/network/decide-connection.ts'
import type { NetworkIndex } from '../../policy/network/network.ts'
import type { RequestLine } from '../../policy/network/request-pattern.ts'
import {
  isForHost,
  mayAnswerTokens,
  mayCarryTokens,
  mayReceive,
  type Secret,
} from '../../policy/network/secret.ts'
import type { Field } from '../http/field.ts'
import type { Refusal } from '../refusal.ts'
import { AnswerScan } from './answer-scan.ts'
import { type AwsKeys, type AwsSigning, awsSigningOf, PRESIGNED } from './aws-request.ts'
import { TokenExchange } from './token-exchange.ts'
import type { Tokens } from './tokens.ts'

export interface SecretValue {
  /** Of the secret. AWS keys have more than one value. */
  readonly name: string
  readonly value: string
  /** Random, and as long as the value. */
  readonly placeholder: string
}

interface Outgoing {
  readonly dial: Dial
  readonly isSecure: boolean
  readonly line: RequestLine
  readonly fields: readonly Field[]
}

export interface Replaced {
  readonly fields: readonly Field[]
  readonly query: string
  /** The names of the secrets in it. */
  readonly used: readonly string[]
  /** Set when pen must sign the request. */
  readonly sign?: AwsSigning | undefined
  /** Set when tokens may be in its body and in the answer. */
  readonly exchange?: TokenExchange | undefined
  /** For the answer, if the host may have a secret: also one of an earlier request. */
  readonly scan?: AnswerScan
}

/** `env` is what it gets beside the placeholders. */
interface Command {
  readonly env: readonly { readonly name: string; readonly value: string }[]
  readonly argv: readonly string[]
}

export class Vault {
  /**
   * The secrets when their values were read. A value never goes anywhere else: an edit may give its name to another
   * secret. A removed secret may still be in answers of these hosts.
   */
  readonly #bound: readonly Secret[]
  readonly #fixed: readonly SecretValue[]
  readonly #aws: readonly AwsKeys[]
  readonly #tokens: Tokens | undefined

  constructor(
    { secrets }: NetworkIndex,
    values: readonly SecretValue[],
    aws: readonly AwsKeys[] = [],
    tokens?: Tokens,
  ) {
    this.#bound = secrets.map(({ rule }) => rule)
    this.#fixed = values
    this.#aws = aws
    this.#tokens = tokens
  }

  get #values(): readonly SecretValue[] {
    return this.#tokens === undefined ? this.#fixed : [...this.#fixed, ...this.#tokens.all()]
  }

  /** The last step before a request is written. `index` has the secrets that are in force: a removed one is not replaced. */
  replace(index: NetworkIndex, { dial, isSecure, line, fields }: Outgoing): Replaced | Refusal {
    const used = new Set<string>()
    const values = this.#values
    const mayHave = (name: string): Secret | Refusal => {
      const secret = this.#inForce(index, name)
      if (secret === undefined) return removed(name)
      const isReceiver = secret.every(one => mayReceive(one, { dial, isSecure }, line))
      return isReceiver ? inBoth(...secret) : elsewhere(name)
    }
    const sign = awsSigningOf(this.#aws, { host: hostOf(dial), query: line.query, fields })
    if (sign !== undefined) {
      const secret = 'reason' in sign ? sign : mayHave(sign.name)
      if ('reason' in secret) return secret
      used.add(secret.name)
    }
    const given = sign === undefined || 'reason' in sign ? fields : sign.fields
    let { query } = line
    for (const { name, placeholder, value: real } of values) {
      if (!decodeAll(line.exact + query).includes(placeholder)) continue
      const secret = mayHave(name)
      if ('reason' in secret) return secret
      if (secret.sign !== undefined) return PRESIGNED
      query = replaceInQuery(query, secret.parameters, placeholder, real)
      if (decodeAll(line.exact + query).includes(placeholder))
        return misplaced(name, 'the address of a request')
      used.add(name)
    }
    const out: Field[] = []
    for (const field of given) {
      const decoded = basicOf(field)
      const basic = values.some(({ placeholder }) => decoded?.includes(placeholder)) ? decoded : undefined
      const written = basic ?? field.value
      let value = written
      for (const { name, placeholder, value: real } of values) {
        if (!value.includes(placeholder)) continue
        const secret = mayHave(name)
        if ('reason' in secret) return secret
        if (!secret.headers.includes(field.key)) return misplaced(name, `the field ${field.key}`)
        value = value.replaceAll(placeholder, () => real)
        used.add(name)
      }
      if (value === written) out.push(field)
      else out.push({ ...field, value: basic === undefined ? value : `Basic ${encode(value)}` })
    }
    const names = this.#namesAt(dial)
    const known = [...this.#fixed, ...(this.#tokens?.seen() ?? [])].filter(({ name }) => names.has(name))
    const exchange = this.#exchange(index, { dial, isSecure, fields, line })
    if (exchange !== undefined && 'reason' in exchange) return exchange
    if (exchange !== undefined) used.add(exchange.name)
    const sent = { query, used: [...used], sign: sign as AwsSigning | undefined, exchange }
    if (exchange === undefined && known.length === 0) return { ...sent, fields: out }
    return { ...sent, fields: scannable(out), scan: new AnswerScan(known) }
  }

  /** The secret whose placeholder is in a text, also percent-encoded. */
  readonly secretIn = (text: string): string | undefined => {
    const decoded = decodeAll(text)
    return this.#values.find(({ placeholder }) => decoded.includes(placeholder))?.name
  }

  /** A command may bring a value inside: in a variable of the user's own, or because the user's shell expanded one. */
  refuseCopies({ env, argv }: Command): void {
    for (const { name, value } of this.#values) {
      const copy = env.find(variable => variable.value.includes(value))
      if (copy === undefined && !argv.some(word => word.includes(value))) continue
      throw new PenError('SECRET', {
        what: `the sandbox would get the value of the secret ${name} in ${copy === undefined ? 'a word of the command' : `the variable ${copy.name}`}`,
        hint:
          copy === undefined
            ? `write '$${name}' in single quotes, and let a shell inside read it: sh -c '…'`
            : `do not pass ${copy.name} on: programs use $${name}; or remove the secret: pen secret remove ${name}`,
      })
    }
  }

  /** Whether the answers of this host are searched: it may have a secret, or could have had one before. */
  searches(dial: Dial): boolean {
    return this.#namesAt(dial).size > 0
  }

  #namesAt(dial: Dial): Set<string> {
    // The key of a signature is never sent, so no answer can have it.
    const here = this.#bound.filter(secret => secret.sign === undefined && isForHost(secret, dial))
    return new Set(here.map(({ name }) => name))
  }

  isInForce(index: NetworkIndex, name: string): boolean {
    return this.#inForce(index, name) !== undefined
  }

  /** The secret of this name as it was at the start, and as it is now. */
  #inForce(index: NetworkIndex, name: string): readonly [Secret, Secret] | undefined {
    const bound = this.#bound.find(secret => secret.name === name)
    const now = index.secrets.find(({ rule }) => rule.name === name)?.rule
    return bound === undefined || now === undefined ? undefined : [bound, now]
  }

  /** A sign-in that was removed is refused: without it, real tokens would come inside. */
  #exchange(
    index: NetworkIndex,
    { dial, isSecure, line, fields }: Outgoing,
  ): TokenExchange | Refusal | undefined {
    if (this.#tokens === undefined) return undefined
    // A server may take the method from a field.
    const isPlain = !fields.some(({ key }) => key.includes('method'))
    const read = isPlain ? line : { ...line, method: 'POST' }
    const secret = this.#bound.find(one => mayAnswerTokens(one, { dial, isSecure }, read))
    if (secret === undefined) return undefined
    const both = this.#inForce(index, secret.name)
    if (both === undefined) return removed(secret.name)
    const mayCarry = both.every(one => mayCarryTokens(one, { dial, isSecure }, line))
    return new TokenExchange(this.#tokens, secret.name, mayCarry)
  }
}

/** With the fields that both have. */
const inBoth = (bound: Secret, now: Secret): Secret => ({
  ...bound,
  headers: bound.headers.filter(key => now.headers.includes(key)),
  parameters: bound.parameters.filter(key => now.parameters.includes(key)),
})

const hostOf = (dial: Dial): string => (dial.kind === 'name' ? dial.host : '')

/** An encoded answer cannot be scanned, and parts of an answer could each hold a part of the value. */
const scannable = (fields: readonly Field[]): Field[] => [
  ...fields.filter(({ key }) => !UNSCANNABLE.test(key.replaceAll(/[_.]/g, '-'))),
  { name: 'Accept-Encoding', key: 'accept-encoding', value: 'identity' },
]

/** Fields that ask for compression, for other characters or for a part, in every spelling that a server may fold. */
const UNSCANNABLE =
  /^(?:(?:grpc-|connect-)?accept-encoding|accept-charset|sec-websocket-extensions|a-im)$|(?:^|-)range$/

/** The decoded pair of user and password. Undefined for other fields. */
function basicOf({ key, value }: Field): string | undefined {
  if (key !== 'authorization') return undefined
  const [, coded] = /^basic +(\S+)$/i.exec(value) ?? []
  return coded === undefined ? undefined : Buffer.from(coded, 'base64').toString('latin1')
}

const encode = (pair: string): string => Buffer.from(pair, 'latin1').toString('base64')

/** In the value of a named parameter that is the placeholder and nothing else. */
function replaceInQuery(
  query: string,
  parameters: readonly string[],
  placeholder: string,
  real: string,
): string {
  return query.replaceAll(/([?&])([^=&]*)=([^&]*)/g, (pair, mark: string, name: string, value: string) =>
    parameters.includes(name) && decodeAll(value) === placeholder
      ? `${mark}${name}=${encodeURIComponent(real)}`
      : pair,
  )
}

function decodeAll(target: string): string {
  return target.replaceAll(/%([0-7][0-9A-Fa-f])/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )
}

const elsewhere = (name: string): Refusal => ({
  reason: 'secret-elsewhere',
  why: `the secret ${name} may not go to this host, port or path`,
  fix: `pen secret list shows where ${name} may go`,
})

const misplaced = (name: string, where: string): Refusal => ({
  reason: 'secret-misplaced',
  why: `the secret ${name} is in ${where}, where it is not replaced`,
  fix: `pen secret list shows the fields of ${name}`,
})

const removed = (name: string): Refusal => ({
  reason: 'secret-removed',
  why: `the secret ${name} was removed`,
  fix: `pen secret add ${name}, then pen restart`,
})
