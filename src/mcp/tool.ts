/** A tool as an MCP client sees it, and what it does. Arguments are a model's: each is checked before anything is done with it. */
import type { Sandbox } from '../library/sandbox.ts'
import { SandboxError } from '../library/sandbox-error.ts'

export interface Property {
  readonly type: 'string' | 'number' | 'boolean' | 'array'
  readonly description: string
  /** Of an array: texts. */
  readonly items?: { readonly type: 'string' }
  readonly minimum?: number
  readonly maximum?: number
}

type Value = string | number | boolean | readonly string[]

export type Arguments = Readonly<Record<string, Value | undefined>>

/** A result of a tool says everything twice: clients pass either the texts or the facts to the model, and leave out the other. */
export interface ToolResult {
  /** In pen's own words first; what came out of the sandbox stands apart, so that it cannot speak for pen. */
  readonly texts: readonly string[]
  /** The same as an object, by the tool's `output`: most clients show the model this alone. */
  readonly facts: Readonly<Record<string, unknown>>
  readonly failed?: boolean
  /** What went wrong, where `texts` and `facts` hold only what came before it. */
  readonly error?: SandboxError
}

/** For clients that ask their user before a tool is used: see annotations in the protocol. */
export interface Effect {
  /** It changes nothing. */
  readonly readOnly: boolean
  /** It may overwrite or delete. */
  readonly destructive: boolean
  /** The same call a second time changes nothing more. */
  readonly idempotent: boolean
  /** It may reach others than the sandbox and the user: the policy decides whom. */
  readonly openWorld: boolean
}

export const READS: Effect = { readOnly: true, destructive: false, idempotent: true, openWorld: false }
export const WRITES: Effect = { readOnly: false, destructive: true, idempotent: true, openWorld: false }

/** One use of a tool. */
export interface Call {
  readonly signal: AbortSignal
  /** What is going on, for a client that asked for progress. */
  report(message: string): void
}

export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly properties: Readonly<Record<string, Property>>
  readonly required: readonly string[]
  /** Of which exactly one is needed. */
  readonly either?: readonly string[]
  /** JSON Schema of the facts, key by key. A call that fails has `error` and no other, or what came before. */
  readonly output: Readonly<Record<string, object>>
  readonly effect: Effect
  run(box: Sandbox, given: Arguments, call: Call): Promise<ToolResult>
}

/** Strictly what the tool says it takes: a model that misspells a name hears of it. */
export function checkArguments(tool: Tool, given: Readonly<Record<string, unknown>>): Arguments {
  const out: Record<string, Value> = {}
  for (const [name, value] of Object.entries(given)) {
    if (value === null || value === undefined) continue
    const property = Object.hasOwn(tool.properties, name) ? tool.properties[name] : undefined
    if (property === undefined) throw wrong(tool, `it takes no "${name}"`)
    if (!isOf(property, value)) throw wrong(tool, `${name} is a ${WORDS[property.type]}`)
    const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = property
    if (typeof value === 'number' && !(value >= minimum && value <= maximum))
      throw wrong(tool, `${name} is from ${minimum} to ${maximum}`)
    out[name] = value as Value
  }
  const missing = tool.required.find(name => out[name] === undefined)
  if (missing !== undefined) throw wrong(tool, `it needs "${missing}"`)
  const { either } = tool
  if (either !== undefined && either.filter(name => out[name] !== undefined).length !== 1)
    throw wrong(tool, `it needs one of ${either.join(' and ')}`)
  return out
}

const WORDS = { string: 'string', number: 'number', boolean: 'boolean', array: 'list of strings' } as const

const isOf = ({ type }: Property, value: unknown): boolean =>
  type === 'array'
    ? Array.isArray(value) && value.every(item => typeof item === 'string')
    : typeof value === type

const wrong = (tool: Tool, what: string): SandboxError =>
  new SandboxError('USAGE', {
    what: `${tool.name}: ${what}`,
    hint: `it takes ${Object.keys(tool.properties).join(', ')}`,
  })

export const text = (given: Arguments, name: string): string | undefined => {
  const value = given[name]
  return typeof value === 'string' ? value : undefined
}

export const number = (given: Arguments, name: string): number | undefined => {
  const value = given[name]
  return typeof value === 'number' ? value : undefined
}

export const words = (given: Arguments, name: string): readonly string[] | undefined => {
  const value = given[name]
  return Array.isArray(value) ? (value as readonly string[]) : undefined
}
