/**
 * The MCP server: tools for a model, all of them inside one sandbox. The sandbox is started by the first tool that is used, so that
 * a client is ready at once, and one that cannot be started is told to the model as what it is. It ends with the client.
 */
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { printable } from '../base/printable.ts'
import { Sandbox, type StartOptions } from '../library/sandbox.ts'
import { SandboxError } from '../library/sandbox-error.ts'
import { fileTools } from './file-tools.ts'
import { permissionTool } from './permission-tool.ts'
import { runTool } from './run-tool.ts'
import { checkArguments, type Tool, type ToolResult } from './tool.ts'

export const TOOLS: readonly Tool[] = [runTool, ...fileTools, permissionTool]

const INSTRUCTIONS =
  'These tools work in a sandbox of one project, whose policy is decided on the host. A refusal is final until the user changes the policy: it names its reason and the command that would change it. Ask with request_permission, and do not try other ways to the same end.'

export async function serveMcp(options: StartOptions & { readonly version: string }): Promise<void> {
  const box = new LazySandbox(options)
  const server = new Server(
    { name: 'pen', version: options.version },
    { capabilities: { tools: {} }, instructions: INSTRUCTIONS },
  )
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOLS.map(describe) }))
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, { signal }) => {
    const { texts, facts, failed = false } = await use(box, params.name, params.arguments ?? {}, signal)
    return {
      content: texts.map(text => ({ type: 'text' as const, text })),
      ...(facts !== undefined && { structuredContent: { ...facts } }),
      isError: failed,
    }
  })
  const over = new Promise<void>(resolve => {
    server.onclose = resolve
    // The protocol's own end of a session: the client closes its side.
    process.stdin.once('end', resolve)
    for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP'] as const) process.once(signal, () => resolve())
  })
  await server.connect(new StdioServerTransport())
  await over
  await box.end()
}

const describe = ({ name, title, description, properties, required, readOnly }: Tool) => ({
  name,
  title,
  description,
  inputSchema: {
    type: 'object' as const,
    properties: { ...properties },
    required: [...required],
    additionalProperties: false,
  },
  annotations: { readOnlyHint: readOnly, destructiveHint: !readOnly, openWorldHint: false },
})

/** What goes wrong is an answer: a model can act on it, a broken protocol helps nobody. */
async function use(
  box: LazySandbox,
  name: string,
  given: Readonly<Record<string, unknown>>,
  signal: AbortSignal,
): Promise<ToolResult> {
  try {
    const tool = TOOLS.find(one => one.name === name)
    if (tool === undefined)
      throw new SandboxError('USAGE', {
        what: `there is no tool "${name}"`,
        hint: TOOLS.map(one => one.name).join(', '),
      })
    const checked = checkArguments(tool, given)
    return await tool.run(await box.get(), checked, signal)
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error
    const { code, what, hint, retry, permission } = error
    // Whoever killed its keeper left no word: the next call starts another.
    if (code === 'ENDED') box.forget()
    return {
      texts: [error.explain()],
      facts: { error: { code, what, hint, retry, permission } },
      failed: true,
    }
  }
}

class LazySandbox {
  readonly #options: StartOptions
  #starting: Promise<Sandbox> | undefined

  constructor(options: StartOptions) {
    this.#options = options
  }

  /** One that ended, by a limit or by its user, is started anew. */
  get(): Promise<Sandbox> {
    if (this.#starting !== undefined) return this.#starting
    const starting = Sandbox.start(this.#options).then(box => {
      // Clients keep what a server says on stderr: what is weaker here, and which gaps were accepted.
      for (const note of box.notes) process.stderr.write(`pen: ${printable(note, 1024)}\n`)
      return box
    })
    const forget = (): void => {
      if (this.#starting === starting) this.#starting = undefined
    }
    starting.then(box => box.on('end', forget), forget)
    this.#starting = starting
    return starting
  }

  forget(): void {
    this.#starting = undefined
  }

  async end(): Promise<void> {
    const box = await this.#starting?.catch(() => undefined)
    await box?.[Symbol.asyncDispose]()
  }
}
