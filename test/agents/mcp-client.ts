/** Real agents as MCP clients of pen, configured as docs/mcp.md says, with a scripted model. */
import { spawnSync } from 'node:child_process'
import { appendFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PEN } from '../conformance/launcher.ts'
import type { Place } from '../library/place.ts'
import { ANTHROPIC } from './mock-anthropic.ts'
import { GEMINI } from './mock-gemini.ts'
import { MockModel, type Protocol, type Turn } from './mock-model.ts'
import { OPENAI } from './mock-openai.ts'
import { PROGRAMS } from './programs.ts'

export interface AgentClient {
  readonly name: string
  readonly protocol: Protocol
  /** The model's name for a tool of pen. */
  tool(name: string): string
  /** pen's part of a tool result: some clients write a line before it. */
  said(text: string): string
  setUp(place: Place, model: MockModel): void
  argv(): readonly string[]
  env(model: MockModel): Readonly<Record<string, string>>
}

const MCP = ['mcp', '--project'] as const

function run(place: Place, program: string, ...args: readonly string[]): void {
  const ran = spawnSync(program, args, { cwd: place.project, env: place.env, encoding: 'utf8' })
  if (ran.status !== 0) throw new Error(`${program} ${args.join(' ')}: ${ran.stdout}${ran.stderr}`)
}

const CLAUDE: AgentClient = {
  name: 'Claude Code',
  protocol: ANTHROPIC,
  tool: name => `mcp__pen__${name}`,
  said: text => text,
  setUp: place =>
    run(place, PROGRAMS['claude-code'], ...'mcp add pen --'.split(' '), PEN, ...MCP, place.project),
  argv: () => [PROGRAMS['claude-code'], '-p', 'go', '--tools', '', '--allowedTools', 'mcp__pen'],
  env: ({ url }) => ({
    ANTHROPIC_BASE_URL: url,
    ANTHROPIC_API_KEY: 'none',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  }),
}

const CODEX: AgentClient = {
  name: 'Codex',
  protocol: OPENAI,
  tool: name => `mcp__pen.${name}`,
  said: text => text.replace(/^Wall time: .*\nOutput:\n/, ''),
  setUp(place, { url }) {
    place.file(
      join(place.home, '.codex/config.toml'),
      [
        'model = "gpt-5"',
        'model_provider = "mock"',
        '[model_providers.mock]',
        'name = "mock"',
        `base_url = "${url}/v1"`,
        'wire_api = "responses"',
        'env_key = "MOCK_KEY"',
        '',
      ].join('\n'),
    )
    run(place, PROGRAMS.codex, ...'mcp add pen --'.split(' '), PEN, ...MCP, place.project)
    const file = join(place.home, '.codex/config.toml')
    // As docs/mcp.md says: pen's policy decides, and the client does not ask for each command.
    if (!readFileSync(file, 'utf8').trimEnd().endsWith(']')) throw new Error('another table is last')
    appendFileSync(file, 'tool_timeout_sec = 600\ndefault_tools_approval_mode = "approve"\n')
  },
  argv: () => [
    PROGRAMS.codex,
    'exec',
    '--skip-git-repo-check',
    '--disable',
    'shell_tool',
    '--sandbox',
    'read-only',
    'go',
  ],
  env: () => ({ MOCK_KEY: 'none' }),
}

const GEMINI_CLI: AgentClient = {
  name: 'Gemini CLI',
  protocol: GEMINI,
  tool: name => `mcp_pen_${name}`,
  said: text => text.replaceAll('\\n', '\n'),
  setUp(place) {
    const settings = {
      security: { auth: { selectedType: 'gemini-api-key' } },
      mcpServers: { pen: { command: PEN, args: [...MCP, place.project], trust: true } },
      tools: { core: ['mcp_pen_*'] },
    }
    place.file(join(place.home, '.gemini/settings.json'), JSON.stringify(settings))
  },
  argv: () => [PROGRAMS.gemini, '--yolo', '--skip-trust', '--prompt', 'go'],
  env: ({ url }) => ({ GEMINI_API_KEY: 'none', GOOGLE_GEMINI_BASE_URL: url }),
}

const OPENCODE: AgentClient = {
  name: 'opencode',
  protocol: ANTHROPIC,
  tool: name => `pen_${name}`,
  said: text => text,
  setUp(place) {
    const settings = {
      mcp: { pen: { type: 'local', command: [PEN, ...MCP, place.project] } },
      permission: { '*': 'deny', 'pen_*': 'allow' },
    }
    place.file(join(place.home, '.config/opencode/opencode.json'), JSON.stringify(settings))
  },
  argv: () => [PROGRAMS.opencode, 'run', '--model', 'anthropic/claude-sonnet-4-5', 'go'],
  env: ({ url }) => ({ ANTHROPIC_API_KEY: 'none', ANTHROPIC_BASE_URL: `${url}/v1` }),
}

/** These clients show the model the structured result. */
export const OBJECT_CLIENTS: readonly AgentClient[] = [CLAUDE, CODEX]
/** These clients show the model the text parts. */
export const TEXT_CLIENTS: readonly AgentClient[] = [GEMINI_CLI, OPENCODE]

const LONGEST_MS = 50_000

/** Lets the client play the model's turns. `model` has what the model received. */
export async function drive(
  client: AgentClient,
  place: Place,
  calls: readonly (readonly [tool: string, input: Readonly<Record<string, unknown>>])[],
): Promise<{ readonly model: MockModel; readonly said: readonly string[] }> {
  const turns: Turn[] = calls.map(([name, input]) => ({ call: [{ name: client.tool(name), input }] }))
  const model = MockModel.open(client.protocol, turns)
  try {
    client.setUp(place, model)
    const child = Bun.spawn([...client.argv()], {
      cwd: place.project,
      env: { ...place.env, ...client.env(model) },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'pipe',
      timeout: LONGEST_MS,
    })
    const [out, err, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    if (code !== 0 || model.unplayed > 0)
      throw new Error(`${client.name} ended with ${code}, ${model.unplayed} turns left: ${out}${err}`)
    return { model, said: model.outcomes.map(({ text }) => client.said(text)) }
  } finally {
    await model.close()
  }
}
