/**
 * Real agents with a sign-in, against servers of the test at the real names. They renew their tokens at once. The
 * servers see tokens, and the agent's volume has placeholders, also in the next run.
 */
import { expect } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { PRESETS } from '../../src/policy/presets.ts'
import type { Project } from '../conformance/network/project.ts'
import { TOKEN_MARK } from '../conformance/network/serve-sign-in.ts'
import { forEachKind } from '../conformance/network/world.ts'
import { PROGRAMS } from './programs.ts'

interface Agent {
  readonly name: 'claude-code' | 'codex'
  /** The file of the volume that holds the sign-in, and a sign-in that must be renewed. */
  readonly file: string
  readonly old: object
  readonly words: readonly string[]
  readonly server: string
  readonly model: string
  readonly secret: string
}

const OLD_REFRESH = 'old-refresh-00000'
const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const OLD_AUTH = { chatgpt_plan_type: 'plus', chatgpt_account_id: 'account-1', chatgpt_user_id: 'user-1' }
const OLD_CLAIMS = { email: 'you@example.com', exp: 1_600_000_000, 'https://api.openai.com/auth': OLD_AUTH }
const OLD_JWT = `${part({ alg: 'RS256' })}.${part(OLD_CLAIMS)}.oldsignatureaaaaaaaaaaaa`

const AGENTS: readonly Agent[] = [
  {
    name: 'claude-code',
    file: '.credentials.json',
    old: {
      claudeAiOauth: {
        accessToken: 'sk-ant-oat01-old-access-0000000000',
        refreshToken: `sk-ant-ort01-${OLD_REFRESH}-0000`,
        expiresAt: 1,
        scopes: ['user:inference', 'user:profile'],
        subscriptionType: 'max',
      },
    },
    words: ['--dangerously-skip-permissions', '-p', 'do it'],
    server: 'platform.claude.com',
    model: 'api.anthropic.com',
    secret: 'CLAUDE_SIGN_IN',
  },
  {
    name: 'codex',
    file: 'auth.json',
    old: {
      OPENAI_API_KEY: null,
      tokens: {
        id_token: OLD_JWT,
        access_token: OLD_JWT,
        refresh_token: `rt_${OLD_REFRESH}-0000`,
        account_id: 'account-1',
      },
      last_refresh: '2020-01-01T00:00:00Z',
    },
    words: ['exec', '--skip-git-repo-check', '--model', 'gpt-5', 'do it'],
    server: 'auth.openai.com',
    model: 'chatgpt.com',
    secret: 'OPENAI_SIGN_IN',
  },
]

function start(project: Project, { name, words }: Agent) {
  const program = realpathSync(PROGRAMS[name])
  const bin = join(project.root, 'bin')
  mkdirSync(bin, { recursive: true })
  const link = join(bin, PRESETS[name].command[0])
  if (!readdirSync(bin).length) symlinkSync(program, link)
  // Codex retries what the test's servers do not answer.
  const shown = ['--read', bin, '--read', dirname(program), ...(name === 'codex' ? ['--wall', '5s'] : [])]
  return project.command(['agent', name, ...shown, '--', ...words], { PATH: `${bin}:/usr/bin:/bin` })
}

for (const agent of AGENTS)
  forEachKind(
    `P22 ${agent.name} renews its sign-in, and its tokens stay outside`,
    async (world, project) => {
      const volume = join(project.stateDir, 'volumes', PRESETS[agent.name].volumes[0]?.volume ?? '')
      mkdirSync(volume, { recursive: true, mode: 0o700 })
      const file = join(volume, agent.file)
      writeFileSync(file, JSON.stringify(agent.old))
      project.ownState(file)
      const heard = world.listen()
      const first = start(project, agent)
      const seen = heard.requests.filter(line => line.startsWith('sign-in '))
      const [renewal = '', ...others] = seen
      expect([first.stderr, renewal]).toEqual([
        expect.anything(),
        expect.stringContaining(`${agent.server} `),
      ])
      expect(renewal).toContain(OLD_REFRESH)
      // The model's server gets the token of the answer, and inside is a placeholder.
      const [, token = ''] =
        /Bearer (\S+)/.exec(others.find(line => line.startsWith(`sign-in ${agent.model}`)) ?? '') ?? []
      expect(token).toContain(TOKEN_MARK)
      expect(readFileSync(file, 'utf8')).not.toContain(OLD_REFRESH)
      expect(textsIn(volume)).not.toContain(TOKEN_MARK)
      expect(first.stdout + first.stderr).not.toContain(TOKEN_MARK)
      const kept = join(project.stateDir, 'tokens', agent.secret)
      for (const name of readdirSync(kept)) expect(statSync(join(kept, name)).mode & 0o777).toBe(0o600)
      expect(project.audit()).toContainEqual(
        expect.objectContaining({ kind: 'request-allowed', name: agent.server, secrets: [agent.secret] }),
      )
      if (agent.name === 'codex') return
      const again = world.listen()
      expect(start(project, agent).stdout).toContain('all done')
      expect(again.requests).toContain(`field authorization Bearer ${token}`)
      expect(project.pen('secret', 'remove', agent.secret)).toContain('removed')
      expect(existsSync(kept)).toBe(false)
    },
    { users: 'ordinary', needs: PROGRAMS[agent.name] },
  )

function textsIn(directory: string): string {
  let out = ''
  for (const name of readdirSync(directory, { recursive: true, encoding: 'utf8' })) {
    const path = join(directory, name)
    const stat = statSync(path, { throwIfNoEntry: false })
    // Codex keeps copies of its program.
    if (stat?.isFile() && stat.size < 1_000_000) out += readFileSync(path, 'latin1')
  }
  return out
}
