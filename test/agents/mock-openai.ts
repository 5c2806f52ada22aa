/** The OpenAI Responses API, as Codex uses it: `base_url` of a model provider is the mock's `url` plus `/v1`. */
import {
  eventStream,
  type ModelRequest,
  objectsIn,
  type Protocol,
  type Turn,
  type Typed,
  textOf,
} from './mock-model.ts'

export const OPENAI: Protocol = {
  isTurn: request => isResponses(request) && objectsIn(request.body['tools']).length > 0,

  play: (request, turn, serial) => response(request, turn, serial),

  other(request) {
    if (isResponses(request)) return response(request, { say: 'a title' }, 0)
    // Codex tries a WebSocket first. This answer makes it use HTTP at once.
    if (request.method === 'GET' && request.path.endsWith('/responses'))
      return new Response(null, { status: 426 })
    return request.path.endsWith('/models')
      ? Response.json({ object: 'list', data: [], models: [] })
      : undefined
  },

  toolNames: request => objectsIn(request.body['tools']).flatMap(namesOf),

  toolOutcomes: request =>
    objectsIn(request.body['input'])
      .filter(({ type }) => type === 'function_call_output' || type === 'custom_tool_call_output')
      .map(item => ({ id: String(item['call_id']), text: textOf(item['output']) })),
}

const isResponses = ({ method, path }: ModelRequest): boolean =>
  method === 'POST' && path.endsWith('/responses')

/** Tools of a namespace are named `namespace.tool`, here and in a turn. */
const namesOf = ({ type, name, tools }: Readonly<Record<string, unknown>>): readonly string[] =>
  type === 'namespace'
    ? objectsIn(tools).map(tool => `${String(name)}.${String(tool['name'])}`)
    : [String(name ?? type)]

function response(request: ModelRequest, turn: Turn, serial: number): Response {
  const output: Typed[] =
    'say' in turn
      ? [
          {
            type: 'message',
            id: `msg_${serial}`,
            role: 'assistant',
            status: 'completed',
            content: [{ type: 'output_text', text: turn.say, annotations: [] }],
          },
        ]
      : turn.call.map(({ name, input }, at) => ({
          type: 'function_call',
          id: `fc_${serial}_${at}`,
          call_id: `call_${serial}_${at}`,
          ...splitName(name),
          arguments: JSON.stringify(input),
          status: 'completed',
        }))
  const head = {
    id: `resp_${serial}`,
    object: 'response',
    created_at: 0,
    model: request.body['model'],
    usage: {
      input_tokens: 1,
      input_tokens_details: { cached_tokens: 0 },
      output_tokens: 1,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: 2,
    },
  }
  const done = { ...head, status: 'completed', output }
  if (request.body['stream'] !== true) return Response.json(done)
  return eventStream([
    { type: 'response.created', response: { ...head, status: 'in_progress', output: [] } },
    ...output.flatMap(itemEvents),
    { type: 'response.completed', response: done },
  ])
}

function splitName(name: string): Readonly<Record<string, string>> {
  const dot = name.lastIndexOf('.')
  return dot < 0 ? { name } : { namespace: name.slice(0, dot), name: name.slice(dot + 1) }
}

function itemEvents(item: Typed, index: number): Typed[] {
  const at = { output_index: index, item_id: item['id'] }
  const text = item.type === 'message' ? textOf(item['content']) : undefined
  return [
    { type: 'response.output_item.added', output_index: index, item: { ...item, status: 'in_progress' } },
    ...(text === undefined
      ? [{ type: 'response.function_call_arguments.done', ...at, arguments: item['arguments'] }]
      : [{ type: 'response.output_text.delta', ...at, content_index: 0, delta: text }]),
    { type: 'response.output_item.done', output_index: index, item },
  ]
}
