/**
 * The MCP server: tools for a model, all inside one sandbox. The first tool call starts the sandbox, so that the client is ready at
 * once and the model sees why a start fails. The sandbox ends with the client.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
  type ProgressNotification,
  type ProgressToken,
  RootsListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { StartOptions } from '../library/sandbox.ts'
import { SandboxError } from '../library/sandbox-error.ts'
import { fileTools } from './file-tools.ts'
import { LazySandbox } from './lazy-sandbox.ts'
import { LineTransport } from './line-transport.ts'
import { permissionTool } from './permission-tool.ts'
import { runTool } from './run-tool.ts'
import {
  answerOf,
  type Call,
  checkArguments,
  describeTool,
  failureOf,
  type Tool,
  type ToolResult,
} from './tool.ts'

const TOOLS: readonly Tool[] = [runTool, ...fileTools, permissionTool]

const INSTRUCTIONS =
  'These tools run in the sandbox of one project. The user sets its policy on the host. A refusal is final until the user changes the policy; it names its reason and the command that changes it. Ask with request_permission, and do not work around a refusal.'

/** Shorter than clients wait before they kill a server whose stdin they closed. */
const LAST_ANSWERS_MS = 1000
const ROOTS_MS = 5000
const PROGRESS_MS = 2000

export interface McpOptions {
  readonly version: string
  /** The start options for a client with these roots (`file:` URIs). */
  start(roots: readonly string[]): StartOptions
}

export async function serveMcp({ version, start }: McpOptions): Promise<void> {
  const server = new Server(
    { name: 'pen', version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  )
  const box = new LazySandbox(async () => start(await rootsOf(server)))
  const ending = new AbortController()
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOLS.map(describeTool) }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra): Promise<CallToolResult> => {
    const { report, end } = startProgress(params._meta?.progressToken, extra.sendNotification)
    const signal = AbortSignal.any([extra.signal, ending.signal])
    try {
      return answerOf(await use(box, params.name, params.arguments ?? {}, { signal, report }))
    } finally {
      end()
    }
  })
  server.setNotificationHandler(RootsListChangedNotificationSchema, () => box.reconsider())
  const transport = new LineTransport()
  const over = new Promise<void>(resolve => {
    // The client ends a session by closing our stdin.
    transport.onend = resolve
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
  await server.connect(transport)
  await over
  await lastAnswers(transport, ending)
  await box.end()
}

/** Answers the requests that came before the end of stdin. Calls that take too long are aborted and answered with an error. */
async function lastAnswers(transport: LineTransport, ending: AbortController): Promise<void> {
  await Promise.race([transport.idle(), sleep(LAST_ANSWERS_MS)])
  ending.abort(new SandboxError('ENDED', { what: 'the client closed the session before the call ended' }))
  await Promise.race([transport.idle(), sleep(LAST_ANSWERS_MS / 2)])
}

/** Empty when the client has no roots or does not answer. The project is then that of the command line. */
async function rootsOf(server: Server): Promise<readonly string[]> {
  if (server.getClientCapabilities()?.roots === undefined) return []
  try {
    const { roots } = await server.listRoots(undefined, { timeout: ROOTS_MS })
    return roots.map(({ uri }) => uri)
  } catch {
    return []
  }
}

type Arguments = Readonly<Record<string, unknown>>

/** Errors become results, because a model can act on them. */
async function use(box: LazySandbox, name: string, args: Arguments, call: Call): Promise<ToolResult> {
  const result = await run(box, name, args, call).catch(
    (thrown: unknown): ToolResult => ({ texts: [], facts: {}, error: failureOf(thrown) }),
  )
  if (result.error === undefined) return result
  // A killed supervisor sends no event. Forget the sandbox, so that the next call starts another.
  if (result.error.code === 'ENDED' && !call.signal.aborted) box.forget()
  return { ...result, error: failureOf(result.error) }
}

async function run(box: LazySandbox, name: string, args: Arguments, call: Call): Promise<ToolResult> {
  const tool = TOOLS.find(one => one.name === name)
  if (tool === undefined)
    throw new SandboxError('USAGE', {
      what: `unknown tool "${name}"`,
      hint: `the tools are ${TOOLS.map(one => one.name).join(', ')}`,
    })
  const checked = checkArguments(tool, args)
  call.report('starting the sandbox')
  const started = await box.get()
  call.report('running')
  return await Promise.race([tool.run(started, checked, call), aborted(call.signal)])
}

/** Rejects on abort, so that a call that does not end is still answered. */
const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const fail = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('cancelled'))
    if (signal.aborted) fail()
    else signal.addEventListener('abort', fail, { once: true })
  })

type Notify = (notification: ProgressNotification) => Promise<void>

/** Sends progress to a client that asked for it by a token. Some clients abort a call that is silent. */
function startProgress(progressToken: ProgressToken | undefined, send: Notify) {
  let message = 'starting'
  const began = performance.now()
  const notify = (token: ProgressToken): void => {
    const progress = Math.round((performance.now() - began) / 100) / 10
    const params = { progressToken: token, progress, message: `${message} (${progress} s)` }
    // The transport notices a client that has gone.
    send({ method: 'notifications/progress', params }).catch(() => undefined)
  }
  const timer = progressToken === undefined ? undefined : setInterval(notify, PROGRESS_MS, progressToken)
  return {
    report: (text: string): void => {
      message = text
    },
    /** Call before the answer: the protocol allows no progress after it. */
    end: (): void => clearInterval(timer),
  }
}
