/**
 * The values of secrets, for as long as the gateway runs, and their replacement in requests. The head of a request is
 * hostile: a program inside may put a placeholder anywhere. It is replaced only in the fields and for the hosts that the
 * user named. Everywhere else the request is refused.
 */
import type { Dial } from '../../policy/network/decide-connection.ts'
import type { NetworkIndex } from '../../policy/network/network.ts'
import type { RequestLine } from '../../policy/network/request-pattern.ts'
import { isForHost, mayReceive, type Secret } from '../../policy/network/secret.ts'
import type { Field } from '../http/field.ts'
import type { Refusal } from '../refusal.ts'
import { AnswerScan } from './answer-scan.ts'

export interface SecretValue {
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
  /** For the answer, if the host may have a secret: also one of an earlier request. */
  readonly scan?: AnswerScan
}

export class Vault {
  readonly #values: readonly SecretValue[]

  constructor(values: readonly SecretValue[]) {
    this.#values = values
  }

  /** The last step before a request is written. `index` has the secrets that are in force: a removed one is not replaced. */
  replace(index: NetworkIndex, { dial, isSecure, line, fields }: Outgoing): Replaced | Refusal {
    const used = new Set<string>()
    const mayHave = (name: string): Secret | Refusal => {
      const secret = index.secrets.find(({ rule }) => rule.name === name)?.rule
      if (secret === undefined) return removed(name)
      return mayReceive(secret, { dial, isSecure }, line) ? secret : elsewhere(name)
    }
    let { query } = line
    for (const { name, placeholder, value: real } of this.#values) {
      if (!decodeAll(line.exact + query).includes(placeholder)) continue
      const secret = mayHave(name)
      if ('reason' in secret) return secret
      query = replaceInQuery(query, secret.parameters, placeholder, real)
      if (decodeAll(line.exact + query).includes(placeholder))
        return misplaced(name, 'the address of a request')
      used.add(name)
    }
    const out: Field[] = []
    for (const field of fields) {
      const decoded = basicOf(field)
      const basic = this.#values.some(({ placeholder }) => decoded?.includes(placeholder))
        ? decoded
        : undefined
      const written = basic ?? field.value
      let value = written
      for (const { name, placeholder, value: real } of this.#values) {
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
    const known = this.#values.filter(({ name }) =>
      index.secrets.some(({ rule }) => rule.name === name && isForHost(rule, dial)),
    )
    if (known.length === 0) return { fields, query, used: [] }
    return { fields: scannable(out), query, used: [...used], scan: new AnswerScan(known) }
  }
}

/** An encoded answer cannot be scanned, and parts of an answer could each hold a part of the value. */
const scannable = (fields: readonly Field[]): Field[] => [
  ...fields.filter(({ key }) => !UNSCANNABLE.test(key.replaceAll(/[_.]/g, '-'))),
  { name: 'Accept-Encoding', key: 'accept-encoding', value: 'identity' },
]

/** Fields that ask for compression or for a part, in every spelling that a server may fold. */
const UNSCANNABLE = /^(?:(?:grpc-|connect-)?accept-encoding|sec-websocket-extensions|a-im)$|(?:^|-)range$/

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
