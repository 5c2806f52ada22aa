/** A real MCP client, the SDK's own, with `pen mcp` as its server. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import { PEN } from '../conformance/launcher.ts'
import type { Place } from './place.ts'

export interface Answer {
  readonly texts: readonly string[]
  readonly facts: Record<string, unknown>
  readonly failed: boolean
}

export class McpClient {
  readonly client = new Client({ name: 'test', version: '1.0.0' })
  readonly #transport: StdioClientTransport

  private constructor(place: Place, flags: readonly string[]) {
    const [command, ...args] = place.argv(PEN, 'mcp', '--project', place.project, ...flags)
    this.#transport = new StdioClientTransport({
      command,
      args,
      env: place.env,
      cwd: place.root,
      stderr: 'inherit',
    })
  }

  static async open(place: Place, ...flags: string[]): Promise<McpClient> {
    const opened = new McpClient(place, flags)
    await opened.client.connect(opened.#transport)
    return opened
  }

  get pid(): number {
    return this.#transport.pid ?? 0
  }

  async call(name: string, given: Record<string, unknown> = {}, signal?: AbortSignal): Promise<Answer> {
    const result = await this.client.callTool({ name, arguments: given }, undefined, {
      timeout: 60_000,
      ...(signal && { signal }),
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
  flags: readonly string[],
  body: (client: McpClient) => Promise<void>,
): Promise<void> {
  const client = await McpClient.open(place, ...flags)
  try {
    await body(client)
  } finally {
    await client.close()
  }
}
