/** `pen agent --ask` beside a real full-screen interface: pen draws nothing into it. */
import { expect } from 'bun:test'
import { realpathSync } from 'node:fs'
import { LAUNCHERS, PEN } from '../conformance/launcher.ts'
import { until } from '../until.ts'
import { type AgentName, AgentProject, define } from './agent-project.ts'
import { ANTHROPIC } from './mock-anthropic.ts'
import type { Protocol, ToolCall } from './mock-model.ts'
import { OPENAI } from './mock-openai.ts'
import { Tmux } from './tmux.ts'

/** This name is never looked up: a person denies it. */
const TARGET = 'held.example.com:80'

interface Interface {
  readonly agent: AgentName
  readonly protocol: Protocol
  readonly shell: (command: string) => ToolCall
  readonly words: readonly string[]
  readonly variables: (address: string) => Readonly<Record<string, string>>
  /** State of an earlier session, so that the agent skips its first-start questions. */
  readonly remember: (directory: string) => Readonly<Record<string, string>>
  readonly quit: string
}

const INTERFACES: readonly Interface[] = [
  {
    agent: 'claude-code',
    protocol: ANTHROPIC,
    shell: command => ({ name: 'Bash', input: { command, description: 'a test' } }),
    words: ['--permission-mode', 'default', '--allowedTools', 'Bash', '--', 'do it'],
    variables: address => ({ ANTHROPIC_AUTH_TOKEN: 'test', ANTHROPIC_BASE_URL: address }),
    remember: directory => ({
      '.claude.json': JSON.stringify({
        hasCompletedOnboarding: true,
        theme: 'dark',
        projects: { [directory]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
      }),
    }),
    quit: '/exit',
  },
  {
    agent: 'codex',
    protocol: OPENAI,
    shell: cmd => ({ name: 'exec_command', input: { cmd, yield_time_ms: 30_000 } }),
    words: ['--ask-for-approval', 'never', '--model', 'gpt-5', 'do it'],
    variables: address => ({ OPENAI_BASE_URL: `${address}/v1` }),
    remember: directory => ({
      'auth.json': JSON.stringify({ OPENAI_API_KEY: 'sk-test' }),
      'config.toml': `[projects.${JSON.stringify(directory)}]\ntrust_level = "trusted"\n`,
    }),
    quit: '/quit',
  },
]

for (const ui of INTERFACES)
  define(`P15 while ${ui.agent} has the screen pen draws no line on it, and reports at the end`, async () => {
    const launcher = LAUNCHERS.at(-1)
    if (launcher === undefined) throw new Error('no user to run it as')
    const project = await AgentProject.open(ui.agent, launcher, ui.protocol, () => [
      { call: [ui.shell(`curl -sS http://${TARGET}/`)] },
      { say: 'all-is-done' },
    ])
    const { box } = project.sandbox
    const directory = realpathSync(box.project)
    for (const [path, text] of Object.entries(ui.remember(directory))) project.remember(path, text)
    const tmux = new Tmux(
      [...launcher.who.become, PEN, ...project.argv(['--ask'], ui.words)],
      box.project,
      box.env(project.env(ui.variables(project.address))),
    )
    try {
      const isHeld = () =>
        project.sandbox
          .audit()
          .some(({ kind, name }) => kind === 'connection-held' && TARGET.startsWith(`${name}:`))
      await until(isHeld, 10_000, () => tmux.screen)
      // As long as pen would take to print a line.
      await Bun.sleep(500)
      expect(tmux.screen).not.toMatch(/pen:|held:|waits for you/)
      expect((await project.sandbox.pen('deny', TARGET, '--once')).code).toBe(0)
      expect(await tmux.shows('all-is-done')).not.toMatch(/pen:|held:/)
      expect(project.model.outcomes.map(({ text }) => text).join()).toContain('pen refused')
      tmux.type(ui.quit)
      await Bun.sleep(300)
      tmux.type('Enter')
      // The terminal wraps this line.
      const summary = (await tmux.shows('had the screen')).replaceAll('\n', '')
      expect(summary).toMatch(
        /pen: held: [^;]*held\.example\.com:80[^;]*waited for you while a program had the screen/,
      )
    } finally {
      tmux.close()
      await project.close()
    }
  })

define('P15 while a program has the screen a connection that waits rings the bell, once', async () => {
  const launcher = LAUNCHERS.at(-1)
  if (launcher === undefined) throw new Error('no user to run it as')
  const project = await AgentProject.open('codex', launcher, OPENAI, () => [])
  const { box } = project.sandbox
  const draws = `printf '\\033[?1049hDRAWN'; until [ -e go ]; do sleep 0.1; done; curl -sS http://${TARGET}/; printf '\\033[?1049l'`
  const run = [PEN, 'run', '--backend', 'process', '--ask', '--', 'sh', '-c', draws]
  const tmux = new Tmux([...launcher.who.become, ...run], box.project, box.env({ TERM: 'xterm' }))
  try {
    await tmux.shows('DRAWN')
    expect(tmux.isRung).toBe(false)
    box.file('go', '')
    await until(
      () => tmux.isRung,
      10_000,
      () => tmux.screen,
    )
    expect(tmux.screen).not.toMatch(/pen:|held:/)
    expect((await project.sandbox.pen('deny', TARGET, '--once')).code).toBe(0)
    expect(await tmux.shows('had the screen')).toContain('pen: held:')
  } finally {
    tmux.close()
    await project.close()
  }
})

define('P15 a program that reads lines leaves the screen to pen: the line appears at once', async () => {
  const launcher = LAUNCHERS.at(-1)
  if (launcher === undefined) throw new Error('no user to run it as')
  const project = await AgentProject.open('codex', launcher, OPENAI, () => [])
  const { box } = project.sandbox
  const run = [PEN, 'run', '--backend', 'process', '--ask', '--', 'curl', '-sS', `http://${TARGET}/`]
  const tmux = new Tmux([...launcher.who.become, ...run], box.project, box.env({ TERM: 'xterm' }))
  try {
    await tmux.shows('waits for you')
    expect((await project.sandbox.pen('deny', TARGET, '--once')).code).toBe(0)
    expect(await tmux.shows('pen: refused')).not.toContain('had the screen')
  } finally {
    tmux.close()
    await project.close()
  }
})
