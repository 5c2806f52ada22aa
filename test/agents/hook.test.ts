/** Real agents on the host with `pen hook`, and a scripted model. Claims are about the host's files, the audit, and what the model received. */
import { expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { inPlace, onProcess, type Place, PROCESS } from '../library/place.ts'
import { skipUnless } from '../skip.ts'
import { ANTHROPIC } from './mock-anthropic.ts'
import { MockModel, type Protocol, type ToolCall, type Turn } from './mock-model.ts'
import { OPENAI } from './mock-openai.ts'
import { missingAgents, PROGRAMS } from './programs.ts'

interface HostAgent {
  readonly name: 'claude-code' | 'codex'
  readonly protocol: Protocol
  /** The files that `pen hook` writes. */
  readonly files: readonly string[]
  shell(command: string, directory: string): ToolCall
  /** A file tool on a file, and what it would do outside of a sandbox. */
  readonly reads: (path: string) => ToolCall
  setUp(place: Place, model: MockModel): void
  readonly words: readonly string[]
  env(model: MockModel): Readonly<Record<string, string>>
}

const AGENTS: readonly HostAgent[] = [
  {
    name: 'claude-code',
    protocol: ANTHROPIC,
    files: ['.claude/settings.local.json'],
    shell: command => ({ name: 'Bash', input: { command, description: 'a test' } }),
    reads: file_path => ({ name: 'Read', input: { file_path } }),
    setUp: () => undefined,
    words: ['-p', 'go'],
    env: ({ url }) => ({
      ANTHROPIC_BASE_URL: url,
      ANTHROPIC_API_KEY: 'none',
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
    }),
  },
  {
    name: 'codex',
    protocol: OPENAI,
    files: ['.codex/hooks.json', '.codex/rules/pen.rules'],
    shell: (cmd, workdir) => ({ name: 'exec_command', input: { cmd, workdir, yield_time_ms: 30_000 } }),
    reads: path => ({ name: 'view_image', input: { path } }),
    setUp: (place, { url }) =>
      void place.file(
        join(place.home, '.codex/config.toml'),
        `model = "gpt-5"
model_provider = "mock"
[model_providers.mock]
name = "mock"
base_url = "${url}/v1"
wire_api = "responses"
env_key = "MOCK_KEY"
[projects.${JSON.stringify(place.project)}]
trust_level = "trusted"
`,
      ),
    // A person trusts the hook in /hooks.
    words: ['exec', '--skip-git-repo-check', '--dangerously-bypass-hook-trust', 'go'],
    env: () => ({ MOCK_KEY: 'none' }),
  },
]

const ground = PROCESS.find(({ who }) => who.uid === process.getuid?.())
const missing = missingAgents()
const onAgents = missing.length === 0 ? onProcess : skipUnless(false, `missing: ${missing.join(', ')}`)

/** What the model received for each call. */
async function drive(agent: HostAgent, place: Place, calls: readonly ToolCall[]): Promise<readonly string[]> {
  const model = MockModel.open(
    agent.protocol,
    calls.map((call): Turn => ({ call: [call] })),
  )
  try {
    agent.setUp(place, model)
    const child = Bun.spawn([PROGRAMS[agent.name], ...agent.words], {
      cwd: place.project,
      env: { ...place.env, ...agent.env(model), HOST_SECRET: 'host-secret-1234' },
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: 50_000,
    })
    const [out, err, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    expect([code, model.unplayed, out + err]).toEqual([0, 0, expect.anything()])
    return model.outcomes.map(({ text }) => text)
  } finally {
    await model.close()
  }
}

for (const agent of AGENTS)
  onAgents(
    `${agent.name} on the host with the hook: commands run in the sandbox, and the model reads refusals`,
    async () => {
      if (ground === undefined) throw new Error('the user that runs the tests is not one of the test users')
      await inPlace(ground, async place => {
        place.configure()
        place.file('.env', 'KEY=1\n')
        place.file('notes.txt', 'project-notes\n')
        const outside = join(place.home, 'outside')
        const secret = place.file(join(place.home, 'secret.txt'), 'home-secret\n')
        const installed = place.pen('hook', agent.name, '--yes')
        expect([installed.code, installed.said]).toEqual([0, expect.stringContaining('installed')])
        const texts = () => agent.files.map(file => readFileSync(join(place.project, file), 'utf8'))
        const before = texts()
        const odd = `echo "it's \\$HOME is $HOME" > made.txt; cat <<'END' >> made.txt
$(touch ${outside}) \\n "
END
pwd; id -un; echo "[$HOST_SECRET]"; touch ${outside}; rm -rf ${agent.files.join(' ')} 2>/dev/null; exit 3`
        const said = await drive(agent, place, [
          agent.shell(odd, place.project),
          // The text of the command closes no quote of pen's.
          agent.shell(`true'; touch ${outside}; '\n"; touch ${outside}; "`, place.project),
          agent.shell(`pwd; cat ${secret}`, '/'),
          agent.shell('curl -sS http://refused.example.com/', place.project),
          agent.reads(secret),
          agent.reads(join(place.project, '.env')),
          agent.reads(join(place.project, 'notes.txt')),
        ])
        expect(existsSync(outside)).toBe(false)
        expect(readFileSync(join(place.project, 'made.txt'), 'utf8')).toBe(
          `it's $HOME is /home/agent\n$(touch ${outside}) \\n "\n`,
        )
        expect(texts()).toEqual(before)
        expect(said[0]).toContain(`${place.project}\nagent\n[]`)
        expect(said[0]).toMatch(/code:? 3/)
        // A directory outside of the project becomes the project.
        expect(said[2]).toContain(place.project)
        expect(said[3]).toContain('pen allow refused.example.com:80')
        expect(said[4]).toContain('pen refused: read')
        expect(said[5]).toContain('files.deny .env* covers it')
        expect(said[6]).not.toContain('pen refused')
        expect(said.join('')).not.toMatch(/home-secret|KEY=1|host-secret/)
        const started = place.audit().filter(({ kind }) => kind === 'exec-start')
        expect(started).toHaveLength(4)

        // Without pen nothing runs.
        for (const file of agent.files.slice(0, 1))
          place.file(
            file,
            readFileSync(join(place.project, file), 'utf8').replaceAll(' __hook', '-gone __hook'),
          )
        const [blocked] = await drive(agent, place, [agent.shell(`touch ${outside}`, place.project)])
        expect(blocked).toContain('pen did not answer')
        expect(existsSync(outside)).toBe(false)
      })
    },
    60_000,
  )
