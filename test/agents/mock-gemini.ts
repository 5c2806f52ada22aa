/**
 * The Gemini API, as Gemini CLI uses it: set GOOGLE_GEMINI_BASE_URL to the mock's `url` (HTTPS unless it is on
 * loopback).
 */
import { type ModelRequest, objectsIn, type Protocol, type Turn } from './mock-model.ts'

export const GEMINI: Protocol = {
  isTurn: request => isGenerate(request) && namesIn(request).length > 0,

  play: (request, turn, serial) => answer(request, turn, serial),

  other(request) {
    if (request.path.endsWith(':countTokens')) return Response.json({ totalTokens: 1 })
    // It asks a small model which model should answer, and expects JSON.
    return isGenerate(request)
      ? answer(request, { say: '{"complexity_reasoning":"","complexity_score":1}' }, 0)
      : undefined
  },

  toolNames: namesIn,

  toolOutcomes: request =>
    objectsIn(request.body['contents'])
      .flatMap(({ parts }) => objectsIn(parts))
      .flatMap(({ functionResponse }) => objectsIn([functionResponse]))
      .map(({ id, response }) => ({ id: String(id), text: JSON.stringify(response) })),
}

const isGenerate = ({ method, path }: ModelRequest): boolean =>
  method === 'POST' && /:(?:streamG|g)enerateContent$/.test(path)

function namesIn({ body }: ModelRequest): readonly string[] {
  const declared = objectsIn(body['tools']).flatMap(tool => objectsIn(tool['functionDeclarations']))
  return declared.map(({ name }) => String(name))
}

function answer({ path }: ModelRequest, turn: Turn, serial: number): Response {
  const parts =
    'say' in turn
      ? [{ text: turn.say }]
      : turn.call.map(({ name, input }, at) => ({
          functionCall: { id: `call_${serial}_${at}`, name, args: input },
        }))
  const value = {
    candidates: [{ content: { role: 'model', parts }, finishReason: 'STOP', index: 0 }],
    usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
    modelVersion: 'mock',
    responseId: `resp_${serial}`,
  }
  if (!path.includes(':stream')) return Response.json(value)
  return new Response(`data: ${JSON.stringify(value)}\n\n`, {
    headers: { 'content-type': 'text/event-stream' },
  })
}
