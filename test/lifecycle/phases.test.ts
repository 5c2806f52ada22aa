/** `--debug` and `PEN_DEBUG=1`: the phases of real runs, in order, with their times. */
import { describe, expect, test } from 'bun:test'
import { PEN } from '../conformance/test-backend.ts'
import { type TemporaryProject, temporaryProject } from '../temporary-project.ts'

const LINE = /^pen: (?:supervisor )?debug: +(\d+\.\d) ms {2}\+ +(\d+\.\d) ms {2}(.+)$/

function pen(project: TemporaryProject, words: readonly string[], env: Record<string, string> = {}) {
  const ran = Bun.spawnSync([PEN, ...words], {
    cwd: project.workspace,
    env: { PATH: process.env['PATH'] ?? '', HOME: project.home, ...env },
  })
  const lines = ran.stderr.toString().split('\n')
  const phases = lines.flatMap(line => {
    const [, at, took, name = ''] = LINE.exec(line) ?? []
    const who = line.includes('supervisor debug') ? 'supervisor' : 'command'
    return at === undefined ? [] : [{ who, name, at: Number(at), took: Number(took) }]
  })
  return { code: ran.exitCode, stdout: ran.stdout.toString(), lines, phases }
}

const BEFORE = ['policy loaded', 'host surveyed', 'plan built', 'backend started']

describe('the phases of a run', () => {
  test('pen run --debug prints them in order, and their times add up', () => {
    using project = temporaryProject()
    const { code, stdout, phases } = pen(project, ['run', '--debug', '--', 'echo', 'done'])
    expect([code, stdout]).toEqual([0, 'done\n'])
    expect(phases.map(({ name }) => name)).toEqual([
      ...BEFORE,
      'gateway open',
      'command started',
      'command ended',
      'cleaned up',
    ])
    let before = 0
    for (const { at, took } of phases) {
      expect(Math.abs(at - before - took)).toBeLessThan(0.2)
      before = at
    }
  })

  test('a run without network opens no gateway, and PEN_DEBUG=1 says the same as --debug', () => {
    using project = temporaryProject()
    const { phases } = pen(project, ['run', '--offline', '--', 'true'], { PEN_DEBUG: '1' })
    expect(phases.map(({ name }) => name)).toEqual([
      ...BEFORE,
      'command started',
      'command ended',
      'cleaned up',
    ])
  })

  test('without either nothing is printed, and --debug after the command is the command’s', () => {
    using project = temporaryProject()
    const { stdout, phases } = pen(project, ['run', '--', 'echo', '--debug'])
    expect([stdout, phases]).toEqual(['--debug\n', []])
  })

  test('pen start --debug passes on the phases of its supervisor, and pen exec --debug has its own', () => {
    using project = temporaryProject()
    try {
      const started = pen(project, ['start', '--detach', '--debug'])
      expect(started.code).toBe(0)
      const of = (who: string) => started.phases.filter(each => each.who === who).map(({ name }) => name)
      expect(of('command')).toEqual(['supervisor asked', 'sandbox ready'])
      expect(of('supervisor')).toEqual([...BEFORE, 'gateway open', 'exec daemon started'])
      const ran = pen(project, ['exec', '--debug', '--', 'echo', 'done'])
      expect([ran.code, ran.stdout]).toEqual([0, 'done\n'])
      expect(ran.phases.map(({ name }) => name)).toEqual(['supervisor answered', 'command ended'])
    } finally {
      pen(project, ['stop'])
    }
  })
})
