/** Sign-in servers and model servers of Claude and OpenAI, as their agents use them. Tokens are new at each request. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { ANTHROPIC } from '../../agents/mock-anthropic.ts'
import type { ModelRequest, Protocol } from '../../agents/mock-model.ts'

/** In every token of these servers. */
export const TOKEN_MARK = 'ZQXJtokenZQXJ'

let serial = 0

/** A JWT that lasts an hour. Codex reads the claims. */
function jwt(): string {
  const auth = { chatgpt_plan_type: 'plus', chatgpt_account_id: 'account-1', chatgpt_user_id: 'user-1' }
  const claims = {
    email: 'you@example.com',
    exp: Math.floor(Date.now() / 1000) + 3600,
    'https://api.openai.com/auth': auth,
  }
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  return `${part({ alg: 'RS256', typ: 'JWT' })}.${part(claims)}.${TOKEN_MARK}signature${++serial}aaaaaaaaaaaaaaaa`
}

const opaque = (kind: string): string => `sk-ant-${kind}01-${TOKEN_MARK}${++serial}aaaaaaaaaaaaaaaaaaaa`

const TOKENS: Readonly<Record<string, () => object>> = {
  'platform.claude.com': () => ({
    token_type: 'Bearer',
    access_token: opaque('oat'),
    refresh_token: opaque('ort'),
    expires_in: 28_800,
    scope: 'user:inference user:profile',
    account: { uuid: 'account-1', email_address: 'you@example.com' },
    organization: { uuid: 'organization-1', name: 'example' },
  }),
  'auth.openai.com': () => ({
    id_token: jwt(),
    access_token: jwt(),
    refresh_token: `rt_${TOKEN_MARK}${++serial}aaaaaaaaaa`,
  }),
}

const MODELS: Readonly<Record<string, Protocol>> = { 'api.anthropic.com': ANTHROPIC }

/** False when the request is for another server. */
export function serveSignIn(
  request: IncomingMessage,
  response: ServerResponse,
  log: (line: string) => void,
): boolean {
  const { method = '', headers, url = '' } = request
  const name = headers.host ?? ''
  // Codex asks for much before its model. The test is about its sign-in alone.
  if (name === 'chatgpt.com' && url.startsWith('/backend-api/')) {
    log(`sign-in ${name} ${url.split('?')[0]} ${headers.authorization ?? '-'}`)
    request.resume()
    response.writeHead(403, { 'content-type': 'application/json' }).end('{"detail":"no"}')
    return true
  }
  if (method !== 'POST' || (TOKENS[name] === undefined && MODELS[name] === undefined)) return false
  void bodyOf(request).then(async text => {
    const path = url.split('?')[0] ?? ''
    log(`sign-in ${name} ${path} ${headers.authorization ?? '-'} ${TOKENS[name] === undefined ? '' : text}`)
    const tokens = TOKENS[name]?.()
    const answer =
      tokens === undefined ? answerOf(MODELS[name], { method, path, text, headers }) : Response.json(tokens)
    response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text())
  })
  return true
}

function answerOf(
  protocol: Protocol | undefined,
  {
    method,
    path,
    text,
    headers,
  }: Pick<ModelRequest, 'method' | 'path'> & { text: string; headers: IncomingMessage['headers'] },
): Response {
  const heard: ModelRequest = {
    method,
    path,
    headers: new Headers(headers as Record<string, string>),
    body: parse(text),
  }
  if (protocol?.isTurn(heard)) return protocol.play(heard, { say: 'all done' }, ++serial)
  return protocol?.other(heard) ?? Response.json({})
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = []
  for await (const piece of request) pieces.push(piece as Buffer)
  return Buffer.concat(pieces).toString()
}

function parse(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}
