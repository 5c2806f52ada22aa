/**
 * Every preset, with a program in the agent's place. It does what the agent does: it reads its keys and
 * instructions, keeps its sign-in in its directory, and talks to its model hosts.
 */
import { expect } from 'bun:test'
import { chmodSync, lstatSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { GROUPS } from '../../../src/policy/network/groups.ts'
import { PRESETS, type PresetName } from '../../../src/policy/presets.ts'
import type { Project } from './project.ts'
import { forEachKind } from './world.ts'

const CANARY = 'canary-of-the-host'
const KEY = 'zqxj-0123456789-kwvb-0123456789'

const FAKE = `#!/bin/sh
for place in $PLACES; do
  echo "kept $(cat $place/sign-in 2>/dev/null || echo nothing)"
  echo "signed in" > $place/sign-in
done
for file in $READS; do grep -q "You are in a sandbox" $file && echo "printed by $file"; done
echo "has $(printenv "$KEY_NAME")"
[ -z "$API" ] || curl -sS -o /dev/null -H "$FIELD: $(printenv "$KEY_NAME")" $API || echo "no API"
echo "other secret: \${AWS_SECRET_ACCESS_KEY-none}"
cat $HOST_HOME/.credentials 2>/dev/null
for url in $HOSTS https://evil.test/; do curl -sSk -o /dev/null -w "$url %{http_code}\\n" $url 2>/dev/null; done
echo "asked: $*"
`

/** The agent's program, in a directory that the user grants to the sandbox. */
function install(project: Project, name: PresetName): string {
  const bin = join(project.root, 'bin')
  mkdirSync(bin)
  chmodSync(bin, 0o755)
  const [program] = PRESETS[name].command
  writeFileSync(join(bin, program), FAKE)
  chmodSync(join(bin, program), 0o755)
  writeFileSync(join(project.home, '.credentials'), CANARY, { mode: 0o644 })
  return bin
}

/** What the program should find, as flags for pen, and the environment that provides some of it. */
function needs(project: Project, name: PresetName, bin: string) {
  const { providers, hosts, volumes, readsAbove } = PRESETS[name]
  const [provider] = providers
  const key = provider?.keys[0] ?? ''
  const rules = [...((provider && GROUPS[provider.group].hosts) ?? []), ...hosts].map(({ rule }) => rule)
  const above = readsAbove ? [`${project.workspace}/../CLAUDE.md`] : []
  const own = readsAbove
    ? []
    : volumes.flatMap(({ at, instructions }) => (instructions ? [`${at}/${instructions}`] : []))
  const set = {
    PATH: `${bin}:/usr/bin:/bin`,
    PLACES: volumes.map(({ at }) => at).join(' '),
    READS: [...above, ...own, '/home/agent/AGENTS.md'].join(' '),
    HOSTS: rules.map(rule => `https://${rule.replace(/:443$/, '/')}`).join(' '),
    HOST_HOME: project.home,
    KEY_NAME: key,
    API: provider === undefined ? '' : `https://${provider.api.replace(/:443$/, '/')}`,
    FIELD: provider?.places[0]?.replace('header:', '') ?? '',
  }
  const words = Object.entries(set).flatMap(([variable, value]) => ['--env', `${variable}=${value}`])
  return {
    flags: ['--read', bin, ...words],
    env: { [key]: KEY, AWS_SECRET_ACCESS_KEY: CANARY },
    printed: { key, field: set.FIELD, reads: set.READS.split(' '), urls: set.HOSTS.split(' '), hosts: rules },
  }
}

function start(project: Project, name: PresetName, bin: string, ...rest: string[]) {
  const { flags, env, printed } = needs(project, name, bin)
  return { ...project.command(['agent', name, ...flags, ...rest], env), ...printed }
}

for (const name of Object.keys(PRESETS) as PresetName[])
  forEachKind(
    `P15 ${name} gets its keys, hosts, instructions and a persistent sign-in, and nothing else of the host’s`,
    async (world, project) => {
      const heard = world.listen()
      const bin = install(project, name)
      const first = start(project, name, bin, '--', '--model', 'x')
      const lines = first.stdout.split('\n')
      expect({ status: first.status, err: first.status === 0 ? '' : first.stderr }).toEqual({
        status: 0,
        err: '',
      })
      const volumes = PRESETS[name].volumes
      expect(lines.filter(line => line.startsWith('kept'))).toEqual(volumes.map(() => 'kept nothing'))
      expect(lines.filter(line => line.startsWith('printed'))).toEqual(
        first.reads.map(file => `printed by ${file}`),
      )
      const [, placeholder = ''] = /^has (.*)$/m.exec(first.stdout) ?? []
      expect(placeholder).toMatch(/^[a-z]{4}-[0-9]{10}-[a-z]{4}-[0-9]{10}$/)
      expect(first.stdout).not.toContain(KEY)
      expect(lines).not.toContain('no API')
      expect(heard.requests).toContain(`field ${first.field} ${KEY}`)
      expect(lines).toContain('other secret: none')
      expect(lines).toContain(`asked: ${[...PRESETS[name].command.slice(1), '--model', 'x'].join(' ')}`)
      expect(lines.filter(line => line.startsWith('https:'))).toEqual([
        ...first.urls.map(url => `${url} 200`),
        'https://evil.test/ 403',
      ])
      const reached = heard.requests
        .filter(line => line.startsWith('request'))
        .map(line => line.split(' ')[4] ?? '')
      expect(new Set(reached)).toEqual(new Set(first.hosts.map(rule => rule.replace(/:443$/, ''))))
      expect(heard.names).not.toContain('evil.test')
      expect(first.stdout).not.toContain(CANARY)
      expect(first.stderr).toContain(`uses ${first.key} without seeing it`)

      const second = start(project, name, bin)
      expect(second.stdout.split('\n').filter(line => line.startsWith('kept'))).toEqual(
        volumes.map(() => 'kept signed in'),
      )
      const shown = start(project, name, bin, '--dry-run-policy', '--json')
      expect(shown.status).toBe(0)
      const printed = [
        first.stderr,
        second.stderr,
        shown.stdout,
        shown.stderr,
        JSON.stringify(project.audit()),
      ].join()
      expect(printed).not.toContain(CANARY)
      expect(printed).not.toContain(KEY)
      const exposed = start(project, name, bin, '--expose-key', first.key)
      expect(exposed.stdout).toContain(`has ${KEY}`)
      expect(exposed.stderr).toContain(`sees ${first.key} itself`)
    },
    { users: 'ordinary' },
  )

forEachKind(
  'P15 an agent that is not installed is reported with its fix, and nothing starts',
  async (_, project) => {
    const { status, stderr } = project.command(['agent', 'codex', '--env', 'PATH=/nowhere'], {
      PATH: '/nowhere',
    })
    expect(status).toBe(125)
    expect(stderr).toContain('npm install --global @openai/codex')
    expect(project.audit()).toEqual([])
  },
  { users: 'ordinary' },
)

forEachKind(
  'P16 files that the sandbox put into a volume are neither followed nor replaced',
  async (_, project) => {
    const bin = install(project, 'codex')
    start(project, 'codex', bin)
    const file = join(project.stateDir, 'volumes/codex/AGENTS.md')
    expect(lstatSync(file).isSymbolicLink()).toBe(true)
    writeFileSync(join(bin, 'codex'), '#!/bin/sh\nrm ~/.codex/AGENTS.md; echo mine > ~/.codex/AGENTS.md\n')
    start(project, 'codex', bin)
    start(project, 'codex', bin)
    expect(readFileSync(file, 'utf8')).toBe('mine\n')
  },
)

forEachKind(
  'P6 a preset opens nothing that the user removed',
  async (world, project) => {
    const heard = world.listen()
    const bin = install(project, 'claude-code')
    const offline = start(project, 'claude-code', bin, '--offline')
    expect(offline.stderr).toContain('opens no host: offline')
    project.writeLive('config.json', '{"version":1,"network":{"deny":["api.anthropic.com"]}}')
    const denied = start(project, 'claude-code', bin)
    expect(denied.stdout).toContain('https://api.anthropic.com/ 403')
    expect(heard.requests.filter(line => line.includes('api.anthropic.com'))).toEqual([])
    expect(denied.stdout).toContain('https://console.anthropic.com/ 200')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P15 a running sandbox serves an agent it was started for; others are refused with the fix',
  async (world, project) => {
    const heard = world.listen()
    const bin = install(project, 'codex')
    const { flags, env, printed } = needs(project, 'codex', bin)
    const pen = (...words: string[]) => project.command(words, env)
    try {
      expect(pen('start', '--detach', '--backend', 'process', ...flags).status).toBe(0)
      const refused = pen('agent', 'codex')
      expect([refused.status, refused.stdout]).toEqual([125, ''])
      expect(refused.stderr).toContain('fix: pen restart --agent codex')

      // The flags stay those of the start.
      expect(pen('restart', '--agent', 'codex').status).toBe(0)
      const [first, second] = [
        project.command(['agent', 'codex', '--', '--model', 'x']),
        pen('agent', 'codex'),
      ]
      const lines = first.stdout.split('\n')
      const words = PRESETS.codex.command.slice(1).join(' ')
      expect([first.status, second.status]).toEqual([0, 0])
      expect(lines.filter(line => line.startsWith('printed'))).toEqual(
        printed.reads.map(file => `printed by ${file}`),
      )
      for (const line of ['kept nothing', 'other secret: none', `asked: ${words} --model x`])
        expect(lines).toContain(line)
      expect(first.stdout).toMatch(/^has [a-z]{4}-[0-9]{10}-/m)
      expect(first.stdout).not.toContain(KEY)
      expect(lines.filter(line => line.startsWith('https:'))).toEqual([
        ...printed.urls.map(url => `${url} 200`),
        'https://evil.test/ 403',
      ])
      expect(second.stdout).toContain('kept signed in')
      expect(heard.names).not.toContain('evil.test')

      // A command in the sandbox does not change what was decided at the start.
      const wider = pen('agent', 'codex', '--allow', 'evil.test:443')
      expect([wider.status, wider.stdout]).toEqual([2, ''])
      expect(wider.stderr).toContain('fix: pen restart --agent codex with these flags')
      const other = pen('agent', 'gemini')
      expect([other.status, other.stderr.includes('pen restart --agent gemini')]).toEqual([125, true])
      expect(`${first.stderr}${second.stderr}${JSON.stringify(project.audit())}`).not.toContain(CANARY)
    } finally {
      pen('stop')
    }
    // Without a running sandbox the agent gets its own, with the same volume.
    expect(start(project, 'codex', bin).stdout).toContain('kept signed in')
  },
)
