/** A tool, the check of its arguments, and its messages in the protocol. Arguments come from a model, so each is checked before use. */
import type { CallToolResult, Tool as ListedTool, ToolAnnotations } from '@modelcontextprotocol/sdk/types.js'
import type { Sandbox } from '../library/sandbox.ts'
import { asSandboxError, SandboxError } from '../library/sandbox-error.ts'

interface Property {
  readonly type: 'string' | 'number' | 'boolean' | 'array'
  readonly description: string
  /** For an array: strings. */
  readonly items?: { readonly type: 'string' }
  readonly minimum?: number
  readonly maximum?: number
}

type Value = string | number | boolean | readonly string[]

export type Arguments = Readonly<Record<string, Value | undefined>>

/** A result contains everything twice: a client passes either the texts or the facts to the model. */
export interface ToolResult {
  /** pen's own text first. Output of the sandbox is in separate texts, so that it cannot pose as pen. */
  readonly texts: readonly string[]
  /** The same as an object, in the schema of `output`. Most clients show the model only this. */
  readonly facts: Readonly<Record<string, unknown>>
  readonly failed?: boolean
  /** The error. `texts` and `facts` then hold the output before it. */
  readonly error?: SandboxError
}

export const READS: ToolAnnotations = {
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false,
}
export const WRITES: ToolAnnotations = { ...READS, readOnlyHint: false, destructiveHint: true }

/** One call of a tool. */
export interface Call {
  readonly signal: AbortSignal
  /** Sets the progress message, for a client that asked for progress. */
  report(message: string): void
}

export interface Tool {
  readonly name: string
  readonly title: string
  readonly description: string
  readonly properties: Readonly<Record<string, Property>>
  readonly required: readonly string[]
  /** Exactly one of these is required. */
  readonly exactlyOneOf?: readonly string[]
  /** JSON Schema of the facts, by key. A failed call has `error`, and perhaps the output before it. */
  readonly output: Readonly<Record<string, object>>
  /** For clients that ask the user before a tool call. */
  readonly effect: ToolAnnotations
  run(box: Sandbox, args: Arguments, call: Call): Promise<ToolResult>
}

/** Accepts exactly what the tool declares: a misspelt name is an error. */
export function checkArguments(tool: Tool, args: Readonly<Record<string, unknown>>): Arguments {
  const out: Record<string, Value> = {}
  for (const [name, value] of Object.entries(args)) {
    if (value === null || value === undefined) continue
    const property = Object.hasOwn(tool.properties, name) ? tool.properties[name] : undefined
    if (property === undefined) throw invalid(tool, `unknown argument "${name}"`)
    if (!matches(property, value))
      throw invalid(
        tool,
        `${name} must be a ${property.type === 'array' ? 'list of strings' : property.type}`,
      )
    const { minimum = Number.NEGATIVE_INFINITY, maximum = Number.POSITIVE_INFINITY } = property
    if (typeof value === 'number' && !(value >= minimum && value <= maximum))
      throw invalid(tool, `${name} must be from ${minimum} to ${maximum}`)
    out[name] = value as Value
  }
  const missing = tool.required.find(name => out[name] === undefined)
  if (missing !== undefined) throw invalid(tool, `"${missing}" is required`)
  const { exactlyOneOf } = tool
  if (exactlyOneOf !== undefined && exactlyOneOf.filter(name => out[name] !== undefined).length !== 1)
    throw invalid(tool, `give exactly one of ${exactlyOneOf.join(' and ')}`)
  return out
}

const matches = ({ type }: Property, value: unknown): boolean =>
  type === 'array'
    ? Array.isArray(value) && value.every(item => typeof item === 'string')
    : typeof value === type

const invalid = (tool: Tool, what: string): SandboxError =>
  new SandboxError('USAGE', {
    what: `${tool.name}: ${what}`,
    hint: `the arguments are ${Object.keys(tool.properties).join(', ')}`,
  })

export const text = (args: Arguments, name: string): string | undefined =>
  typeof args[name] === 'string' ? args[name] : undefined

export const number = (args: Arguments, name: string): number | undefined =>
  typeof args[name] === 'number' ? args[name] : undefined

export const strings = (args: Arguments, name: string): readonly string[] | undefined =>
  typeof args[name] === 'object' ? args[name] : undefined

const ERROR = {
  type: 'object',
  description: 'only if the call failed',
  properties: {
    code: { type: 'string' },
    what: { type: 'string' },
    at: { type: 'string' },
    hint: { type: 'string' },
    retry: { type: 'boolean', description: 'whether the same call may succeed later' },
    permission: { type: 'string', description: 'the command that allows it; the user runs it on the host' },
  },
}

export const describeTool = (tool: Tool): ListedTool => ({
  name: tool.name,
  title: tool.title,
  description: tool.description,
  inputSchema: {
    type: 'object',
    properties: { ...tool.properties },
    required: [...tool.required],
    additionalProperties: false,
  },
  // Nothing is required: the SDK's client checks failed calls against the same schema.
  outputSchema: {
    type: 'object',
    properties: { error: ERROR, ...tool.output },
    additionalProperties: false,
  },
  annotations: { title: tool.title, ...tool.effect },
})

export function answerOf({ texts, facts, failed = false, error }: ToolResult): CallToolResult {
  const all = error === undefined ? texts : [error.explain(), ...texts]
  return {
    content: all.map(text => ({ type: 'text', text })),
    structuredContent: error === undefined ? facts : { error: errorFacts(error), ...facts },
    isError: failed || error !== undefined,
  }
}

function errorFacts({ code, what, at, hint, retry, permission }: SandboxError): object {
  return { code, what, at, hint, retry, permission }
}

/** Converts an error for a model. A model can start a sandbox only by using a tool. */
export function failureOf(thrown: unknown): SandboxError {
  const error = asSandboxError(thrown)
  if (!(error instanceof SandboxError))
    return new SandboxError('INTERNAL', {
      what: `pen failed: ${error.message}`,
      hint: 'ask the user to run pen doctor on the host',
    })
  if (error.code !== 'ENDED') return error
  return new SandboxError('ENDED', {
    what: error.what,
    hint: 'use the tool again: it starts a new sandbox; pen logs --all on the host shows what ended this one',
  })
}
