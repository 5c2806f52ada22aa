/** The same lifecycle in a container, for every engine that this machine can have. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { PRESETS } from '../../src/policy/presets.ts'
import { Box } from '../conformance/box.ts'
import type { Launcher } from '../conformance/launcher.ts'
import { ANY_BACKEND } from '../conformance/test-backend.ts'
import { everyEngine } from '../engines/every-engine.ts'
import { removeImages, type TestEngine } from '../engines/test-engine.ts'
import { tinyImage } from '../images/tiny.ts'
import { lives, until } from '../until.ts'
import { exchange, forward, freePort, serveInside } from './forwarded.ts'
import { ProjectSandbox } from './project-sandbox.ts'
import { provesEveryday, SshClient } from './ssh-client.ts'

const onEachEngine = everyEngine()

function containersOf(engine: TestEngine, here: ProjectSandbox): string[] {
  const id = here.stateDir.slice(here.stateDir.lastIndexOf('/') + 1)
  const asked = ['ps', '-a', '--filter', `label=pen.sandbox=${id}`, '--format', '{{.Names}}']
  const [program = '', ...rest] = engine.command(asked)
  return spawnSync(program, rest, { encoding: 'utf8' }).stdout.split('\n').filter(Boolean)
}

/**
 * A program in place of a coding agent: it prints its arguments, and stores them where the agent stores its
 * state.
 */
const INSTALL_AGENT =
  'printf \'#!/bin/sh\\necho "asked: $*, before: $(cat ~/.codex/last 2>/dev/null)"\\necho "$*" > ~/.codex/last\\n\' > /r/bin/codex && chmod 755 /r/bin/codex'

/** The words that the preset puts in front of the user's. */
const WORDS = PRESETS.codex.command.slice(1).join(' ')

/** From pen's own image, or from one that is built for the project. */
async function inContainer(
  engine: TestEngine,
  body: (here: ProjectSandbox) => Promise<void>,
  dockerfile?: string,
): Promise<void> {
  const launcher: Launcher = {
    name: engine.name,
    who: engine.who,
    ...ANY_BACKEND,
    flags: ['--backend', engine.backend, '--offline'],
    env: engine.env,
    start: () => {
      throw new Error('nothing runs here: it stays')
    },
  }
  const box = new Box(launcher)
  const here = new ProjectSandbox(box)
  try {
    here.configure(
      JSON.stringify({ version: 1, profile: 'coding', backend: engine.backend, network: { offline: true } }),
    )
    if (dockerfile !== undefined) await build(here, dockerfile)
    await body(here)
  } finally {
    await here.pen('stop')
    if (dockerfile !== undefined) removeImages(engine, box.project)
    box.remove()
  }
}

async function build(here: ProjectSandbox, dockerfile: string): Promise<void> {
  here.box.file('.pen/Dockerfile', dockerfile)
  const shown = await here.pen('build')
  const digest = /--expect (sha256:[0-9a-f]{64})/.exec(`${shown.stdout}${shown.stderr}`)?.[1] ?? ''
  expect(await here.pen('build', '--quiet', '--yes', '--expect', digest)).toMatchObject({ code: 0 })
}

onEachEngine(
  'P14 start, exec, forward, restart and stop work in a container, and nothing is left',
  engine =>
    inContainer(engine, async here => {
      expect(await here.pen('start', '--detach')).toMatchObject({ code: 0 })
      const status = JSON.parse((await here.pen('status', '--json')).stdout)
      expect(status).toMatchObject({ running: true, backend: engine.backend, isolation: 'container' })
      expect(status.image).toContain('pen/')
      expect(containersOf(engine, here)).toHaveLength(1)
      expect(await here.sh('echo out; echo err >&2; echo kept > /tmp/kept; exit 5')).toMatchObject({
        code: 5,
        stdout: 'out\n',
        stderr: 'err\n',
      })
      expect(await here.sh('cat /tmp/kept; pwd; test "$(id -u)" != 0')).toMatchObject({
        code: 0,
        stdout: `kept\n${here.box.project}\n`,
      })
      // Another one of the project runs beside it.
      expect(await here.pen('start', '--detach', '--name', 'other')).toMatchObject({ code: 0 })
      const beside = await here.pen('exec', '--name', 'other', '--', 'sh', '-c', 'cat /tmp/kept || echo none')
      expect(beside).toMatchObject({ code: 0, stdout: 'none\n' })
      expect(await here.pen('stop', '--name', 'other')).toMatchObject({ code: 0 })
      expect(containersOf(engine, here)).toHaveLength(1)
      const late = await here.start(['exec', '--timeout', '400ms', '--', 'sleep', '60']).ended
      expect(late).toMatchObject({ code: 124 })
      // The commands run as another user than the exec daemon: they can neither signal nor trace it.
      const agent = await here.sh(
        'cd /proc; for p in [0-9]*; do grep -qa __age[n]t $p/cmdline && kill -9 $p && echo killed; done 2>/dev/null; echo on',
      )
      expect(agent).toMatchObject({ stdout: 'on\n' })
      await provesEveryday(await SshClient.of(here))
      const port = await freePort()
      await serveInside(here, port)
      expect(await exchange(port, 'there')).toBe('ECONNREFUSED')
      await forward(here, String(port))
      const words = Array.from({ length: 60 }, (_, index) => `word ${index}`)
      for (const word of words.slice(40)) expect(await exchange(port, word, '::1')).toBe(`hello ${word}`)
      const answers = await Promise.all(words.map(word => exchange(port, word)))
      expect(answers).toEqual(words.map(word => `hello ${word}`))
      expect(await here.pen('restart')).toMatchObject({ code: 0 })
      expect(await exchange(port, 'there')).toBe('ECONNREFUSED')
      expect(await here.sh('cat /tmp/kept 2>/dev/null || echo new')).toMatchObject({ stdout: 'new\n' })
      const pid = here.supervisor() ?? 0
      expect(await here.pen('stop')).toMatchObject({ code: 0 })
      expect(lives(pid)).toBe(false)
      expect(containersOf(engine, here)).toEqual([])
      expect(here.leftovers()).toEqual([])
    }),
  120_000,
)

onEachEngine(
  'P4 P17 a killed supervisor takes its container along, and the next command starts another',
  engine =>
    inContainer(engine, async here => {
      await here.pen('start', '--detach')
      const pid = here.supervisor() ?? 0
      const command = here.start(['exec', '--', '/bin/sh', '-c', 'echo up; sleep 100'])
      await command.printed('up')
      process.kill(pid, 'SIGKILL')
      expect((await command.ended).code).toBe(137)
      await until(() => containersOf(engine, here).length === 0, 5000)
      expect(await here.pen('status')).toMatchObject({ code: 1 })
      expect(here.leftovers()).toEqual([])
      expect(await here.sh('echo again')).toMatchObject({ code: 0, stdout: 'again\n' })
    }),
  120_000,
)

onEachEngine(
  'P15 pen agent runs in the container that was started for it, or in one of its own',
  engine =>
    inContainer(
      engine,
      async here => {
        const agent = (...words: string[]) => here.pen('agent', 'codex', '--', ...words)
        expect(await agent('one')).toMatchObject({ code: 0, stdout: `asked: ${WORDS} one, before: \n` })
        await here.pen('start', '--detach', '--agent', 'codex')
        expect(containersOf(engine, here)).toHaveLength(1)
        expect(await agent('two')).toMatchObject({
          code: 0,
          stdout: `asked: ${WORDS} two, before: ${WORDS} one\n`,
        })
        expect(await here.sh('cat ~/.codex/last')).toMatchObject({ stdout: `${WORDS} two\n` })
        const absent = await here.pen('agent', 'gemini')
        expect([absent.code, absent.stderr]).toEqual([
          125,
          expect.stringContaining('pen restart --agent gemini'),
        ])
        await here.pen('restart', '--agent', 'gemini')
        const missing = await here.pen('agent', 'gemini')
        expect([missing.code, missing.stderr]).toEqual([127, expect.stringContaining('is not in the image')])
      },
      tinyImage(INSTALL_AGENT),
    ),
  120_000,
)
