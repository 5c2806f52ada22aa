/**
 * The MCP server: tools for a model, all of them inside one sandbox. The sandbox is started by the first tool that is used, so that
 * a client is ready at once, and one that cannot be started is told to the model as what it is. It ends with the client.
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import {
  CallToolRequestSchema,
  type CallToolResult,
  ListToolsRequestSchema,
  RootsListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import type { StartOptions } from '../library/sandbox.ts'
import { SandboxError } from '../library/sandbox-error.ts'
import { answerOf, describeTool, failureOf } from './answer.ts'
import { fileTools } from './file-tools.ts'
import { LazySandbox } from './lazy-sandbox.ts'
import { LineTransport } from './line-transport.ts'
import { permissionTool } from './permission-tool.ts'
import { Progress } from './progress.ts'
import { runTool } from './run-tool.ts'
import { type Call, checkArguments, type Tool, type ToolResult } from './tool.ts'

export const TOOLS: readonly Tool[] = [runTool, ...fileTools, permissionTool]

const INSTRUCTIONS =
  'These tools work in a sandbox of one project, whose policy is decided on the host. A refusal is final until the user changes the policy: it names its reason and the command that would change it. Ask with request_permission, and do not try other ways to the same end.'

/** Within what clients wait for before they kill a server whose input they closed. */
const LAST_ANSWERS_MS = 1000
const ROOTS_MS = 5000

export interface McpOptions {
  readonly version: string
  /** What to start for a client with these roots (`file:` URIs). */
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
    const progress = new Progress(params._meta?.progressToken, extra.sendNotification)
    const signal = AbortSignal.any([extra.signal, ending.signal])
    const report = (message: string): void => {
      progress.message = message
    }
    try {
      return answerOf(await use(box, params.name, params.arguments ?? {}, { signal, report }))
    } finally {
      progress.end()
    }
  })
  server.setNotificationHandler(RootsListChangedNotificationSchema, () => box.reconsider())
  const transport = new LineTransport()
  const over = new Promise<void>(resolve => {
    // The protocol's own end of a session: the client closes its side.
    transport.onend = resolve
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
  await server.connect(transport)
  await over
  await lastAnswers(transport, ending)
  await box.end()
}

/** What was asked before the input ended is answered: what takes longer, by that it was ended. */
async function lastAnswers(transport: LineTransport, ending: AbortController): Promise<void> {
  await within(LAST_ANSWERS_MS, transport.idle())
  ending.abort(new SandboxError('ENDED', { what: 'the client closed the session before the call was over' }))
  await within(LAST_ANSWERS_MS / 2, transport.idle())
}

function within(ms: number, done: Promise<void>): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    void done.then(() => {
      clearTimeout(timer)
      resolve()
    })
  })
}

/** None where the client has none to tell, or does not answer: then what the user started pen with counts alone. */
async function rootsOf(server: Server): Promise<readonly string[]> {
  if (server.getClientCapabilities()?.roots === undefined) return []
  try {
    const { roots } = await server.listRoots(undefined, { timeout: ROOTS_MS })
    return roots.map(({ uri }) => uri)
  } catch {
    return []
  }
}

/** What goes wrong is an answer: a model can act on it, a broken protocol helps nobody. */
async function use(
  box: LazySandbox,
  name: string,
  given: Readonly<Record<string, unknown>>,
  call: Call,
): Promise<ToolResult> {
  try {
    const tool = TOOLS.find(one => one.name === name)
    if (tool === undefined)
      throw new SandboxError('USAGE', {
        what: `there is no tool "${name}"`,
        hint: TOOLS.map(one => one.name).join(', '),
      })
    const checked = checkArguments(tool, given)
    call.report('starting the sandbox')
    const started = await box.get()
    call.report('running')
    const result = await Promise.race([tool.run(started, checked, call), aborted(call.signal)])
    if (result.error?.code === 'ENDED' && !call.signal.aborted) box.forget()
    return result.error === undefined ? result : { ...result, error: failureOf(result.error) }
  } catch (thrown) {
    const error = failureOf(thrown)
    // Whoever killed its supervisor left no word: the next call starts another.
    if (error.code === 'ENDED' && !call.signal.aborted) box.forget()
    return { texts: [], facts: {}, error }
  }
}

/** A call that cannot be ended is answered all the same. */
const aborted = (signal: AbortSignal): Promise<never> =>
  new Promise((_, reject) => {
    const fail = (): void => reject(signal.reason instanceof Error ? signal.reason : new Error('cancelled'))
    if (signal.aborted) fail()
    else signal.addEventListener('abort', fail, { once: true })
  })
