/** A real MCP client, from the SDK, with `pen mcp` as its server. */
import { pathToFileURL } from 'node:url'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import type { ProgressCallback } from '@modelcontextprotocol/sdk/shared/protocol.js'
import { ListRootsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { PEN } from '../conformance/launcher.ts'
import type { Place } from './place.ts'

export interface Answer {
  readonly texts: readonly string[]
  readonly facts: Record<string, unknown>
  readonly failed: boolean
}

export interface Opening {
  /** The directory where the client starts its server. */
  readonly cwd?: string
  /** Arguments after `pen mcp`. */
  readonly flags?: readonly string[]
  /** The directories that the client announces as roots. Without them it has no roots. */
  readonly roots?: () => readonly string[]
}

export class McpClient {
  readonly client: Client
  readonly #transport: StdioClientTransport

  private constructor(place: Place, { cwd, flags, roots }: Opening) {
    this.client = new Client(
      { name: 'test', version: '1.0.0' },
      { capabilities: roots === undefined ? {} : { roots: { listChanged: true } } },
    )
    if (roots !== undefined)
      this.client.setRequestHandler(ListRootsRequestSchema, () => ({
        roots: roots().map(path => ({ uri: pathToFileURL(path).href })),
      }))
    const [command, ...args] = place.argv(PEN, 'mcp', ...(flags ?? ['--project', place.project]))
    this.#transport = new StdioClientTransport({
      command,
      args,
      env: place.env,
      cwd: cwd ?? place.root,
      stderr: 'inherit',
    })
  }

  static async open(place: Place, opening: Opening): Promise<McpClient> {
    const opened = new McpClient(place, opening)
    await opened.client.connect(opened.#transport)
    return opened
  }

  get pid(): number {
    return this.#transport.pid ?? 0
  }

  async call(
    name: string,
    given: Record<string, unknown> = {},
    options: { readonly signal?: AbortSignal; readonly onprogress?: ProgressCallback } = {},
  ): Promise<Answer> {
    const result = await this.client.callTool({ name, arguments: given }, undefined, {
      timeout: 60_000,
      ...options,
    })
    const content = result.content as { type: string; text: string }[]
    return {
      texts: content.map(({ text }) => text),
      facts: (result.structuredContent ?? {}) as Record<string, unknown>,
      failed: result.isError === true,
    }
  }

  close(): Promise<void> {
    return this.client.close()
  }
}

export async function withClient(
  place: Place,
  opening: Opening,
  body: (client: McpClient) => Promise<void>,
): Promise<void> {
  const client = await McpClient.open(place, opening)
  try {
    await body(client)
  } finally {
    await client.close()
  }
}
