/**
 * Decides what happens to one message of a client. Every request is answered. Requests that the SDK would drop, or answer with the
 * output of its validator, are answered here in plain words.
 */
import {
  CallToolRequestSchema,
  ErrorCode,
  InitializeRequestSchema,
  type JSONRPCMessage,
  JSONRPCMessageSchema,
  ListToolsRequestSchema,
  PingRequestSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { inQuotes, printable } from '../base/printable.ts'

export type Id = string | number

/** The answer to an invalid message. `id` is null when the message has no usable id. */
interface Refusal {
  readonly id: Id | null
  readonly code: ErrorCode
  readonly message: string
}

type Verdict =
  | { readonly pass: JSONRPCMessage; readonly request?: Id }
  | { readonly refuse: Refusal }
  /** A malformed notification or answer: the protocol answers neither. */
  | { readonly drop: true }

const REQUESTS = {
  initialize: InitializeRequestSchema,
  ping: PingRequestSchema,
  'tools/list': ListToolsRequestSchema,
  'tools/call': CallToolRequestSchema,
} as const

type Fields = Readonly<Record<string, unknown>>

const isObject = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

const isId = (value: unknown): value is Id => typeof value === 'string' || typeof value === 'number'

export function judgeMessage(value: unknown): Verdict {
  if (!isObject(value))
    return refuse(null, ErrorCode.InvalidRequest, 'a message must be a JSON object, one per line')
  const { id, method } = value
  if (method === undefined && ('result' in value || 'error' in value)) return passOrDrop(value)
  if (id === undefined && typeof method === 'string') return passOrDrop(value)
  if (!isId(id) || (typeof id === 'number' && !Number.isSafeInteger(id)))
    return refuse(isId(id) ? id : null, ErrorCode.InvalidRequest, 'id must be a string or an integer')
  if (value['jsonrpc'] !== '2.0') return refuse(id, ErrorCode.InvalidRequest, 'jsonrpc must be "2.0"')
  if (typeof method !== 'string') return refuse(id, ErrorCode.InvalidRequest, 'method must be a string')
  return judgeRequest(id, method, value['params'])
}

function judgeRequest(id: Id, method: string, params: unknown): Verdict {
  const schema = Object.hasOwn(REQUESTS, method) ? REQUESTS[method as keyof typeof REQUESTS] : undefined
  if (schema === undefined) {
    const name = inQuotes(printable(method, 100))
    const known = Object.keys(REQUESTS).join(', ')
    return refuse(id, ErrorCode.MethodNotFound, `unknown method ${name}; pen mcp has ${known}`)
  }
  if (params !== undefined && !isObject(params))
    return refuse(id, ErrorCode.InvalidParams, `${method}: params must be an object`)
  // pen declares no tasks, so the protocol lets it ignore a request for one.
  const { task: _task, ...rest } = params ?? {}
  const message = { method, ...(params !== undefined && { params: rest }) }
  const parsed = schema.safeParse(message)
  if (!parsed.success) {
    const path = parsed.error.issues[0]?.path.map(String).join('.') ?? 'params'
    const what = `${method}: ${printable(path, 200)} is missing or has the wrong type`
    return refuse(id, ErrorCode.InvalidParams, `${what}; see the MCP specification for ${method}`)
  }
  return { pass: { jsonrpc: '2.0', id, ...message } as JSONRPCMessage, request: id }
}

function passOrDrop(value: Fields): Verdict {
  const parsed = JSONRPCMessageSchema.safeParse(value)
  return parsed.success ? { pass: parsed.data } : { drop: true }
}

const refuse = (id: Id | null, code: ErrorCode, message: string): Verdict => ({
  refuse: { id, code, message },
})
