/** The Anthropic Messages API, as Claude Code uses it: set ANTHROPIC_BASE_URL to the mock's `url`. */
import {
  eventStream,
  type ModelRequest,
  objectsIn,
  type Protocol,
  type Turn,
  type Typed,
  textOf,
} from './mock-model.ts'

const USAGE = {
  input_tokens: 1,
  output_tokens: 1,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
}

export const ANTHROPIC: Protocol = {
  isTurn: request => isMessages(request) && objectsIn(request.body['tools']).length > 0,

  play: (request, turn, serial) => message(request, turn, serial),

  other(request) {
    if (request.path.endsWith('/v1/messages/count_tokens')) return Response.json({ input_tokens: 1 })
    if (isMessages(request)) return message(request, { say: 'a title' }, 0)
    // Claude Code checks that the server is up.
    return request.method === 'HEAD' ? new Response(null) : undefined
  },

  toolNames: request => objectsIn(request.body['tools']).map(({ name }) => String(name)),

  toolOutcomes: request =>
    objectsIn(request.body['messages'])
      .flatMap(({ content }) => objectsIn(content))
      .filter(({ type }) => type === 'tool_result')
      .map(block => ({ id: String(block['tool_use_id']), text: textOf(block['content']) })),
}

const isMessages = ({ method, path }: ModelRequest): boolean =>
  method === 'POST' && path.endsWith('/v1/messages')

function message(request: ModelRequest, turn: Turn, serial: number): Response {
  const content: Typed[] =
    'say' in turn
      ? [{ type: 'text', text: turn.say }]
      : turn.call.map(({ name, input }, at) => ({
          type: 'tool_use',
          id: `toolu_${serial}_${at}`,
          name,
          input,
        }))
  const stop = { stop_reason: 'say' in turn ? 'end_turn' : 'tool_use', stop_sequence: null }
  const head = {
    id: `msg_${serial}`,
    type: 'message',
    role: 'assistant',
    model: request.body['model'],
    usage: USAGE,
  }
  if (request.body['stream'] !== true) return Response.json({ ...head, content, ...stop })
  return eventStream([
    {
      type: 'message_start',
      message: { ...head, content: [], stop_reason: null, stop_sequence: null },
    },
    ...content.flatMap(blockEvents),
    { type: 'message_delta', delta: stop, usage: { output_tokens: 1 } },
    { type: 'message_stop' },
  ])
}

function blockEvents(block: Typed, index: number): Typed[] {
  const [start, delta] =
    block.type === 'text'
      ? [
          { type: 'text', text: '' },
          { type: 'text_delta', text: block['text'] },
        ]
      : [
          { ...block, input: {} },
          { type: 'input_json_delta', partial_json: JSON.stringify(block['input']) },
        ]
  return [
    { type: 'content_block_start', index, content_block: start },
    { type: 'content_block_delta', index, delta },
    { type: 'content_block_stop', index },
  ]
}
