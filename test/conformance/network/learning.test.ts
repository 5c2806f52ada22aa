/** From what a command could not reach to the rules that it needs: shown by pen, and opened by the user alone. */
import { expect } from 'bun:test'
import { until } from '../../until.ts'
import { forEachKind } from './world.ts'
import { UP } from './zones.ts'

const get = (url: string) => `curl -s -m 20 -o /dev/null -w '%{http_code} ' ${url}`

forEachKind(
  'P7 --learn opens nothing, and shows the smallest change; its command is enough',
  async (world, project) => {
    const heard = world.listen()
    const script = `${get('http://allowed.test/')}; ${get('http://allowed.test/')}; ${get(`http://${UP}:8080/`)}; ${get('http://10.0.0.5/')}; ${get('http://both.test/')}`
    project.pen('deny', 'both.test')
    const first = await project.run(script, { flags: ['--learn'] })
    expect(first.out).toBe('403 403 403 403 403 ')
    expect([heard.left, heard.names, heard.requests]).toEqual([[], [], []])
    expect(first.err).toContain('  network.http\n  + allowed.test:80  (2 times)\n')
    expect(first.err).toContain(`  network.tcp\n  + ${UP}:8080\n`)
    expect(first.err).toContain('  10.0.0.5:80  pen allow 10.0.0.5:80\n')
    expect(first.err).toContain('denied by your rules:\n  both.test:80  pen forget both.test')
    const { command } = JSON.parse(project.pen('logs', '--suggest', '--json')) as { command: string }
    expect(command).toBe(`pen allow ${UP}:8080 allowed.test:80`)
    expect(first.err).toContain(`to allow exactly these:\n  ${command}\n`)
    project.pen(...command.split(' ').slice(1))
    const second = await project.run(script, { flags: ['--learn'] })
    expect(second.out).toBe('200 200 200 403 403 ')
    expect(second.err).toContain('nothing to suggest: the rules allow every host that was used')
    expect(project.pen('logs', '--suggest')).toContain('nothing to suggest')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P16 grants for a session and by flag are suggested as permanent rules',
  async (_world, project) => {
    const running = project.start(`${get('http://allowed.test/')}; ${get('http://both.test/')}`, {
      allow: ['both.test:80'],
      flags: ['--ask', '--learn'],
    })
    await until(() => project.audit().some(({ kind }) => kind === 'connection-held'), 10_000)
    project.pen('allow', 'allowed.test:80', '--session')
    const { out, err } = await running.ended
    expect(out).toBe('200 200 ')
    expect(err).toContain('to allow exactly these:\n  pen allow allowed.test:80 both.test:80\n')
    expect(project.pen('config', 'show')).not.toContain('allowed.test')
  },
  { users: 'ordinary' },
)

forEachKind(
  'P11 at its end a sandbox prints one line per refused host, with what would allow it',
  async (_, project) => {
    const dial = ['exec', '--', '/bin/sh', '-c', `${get('http://evil.test/')}; ${get('http://evil.test/')}`]
    expect(project.command(['start', '--detach', '--backend', 'process']).status).toBe(0)
    try {
      const fails = project.command(['exec', '--', '/bin/sh', '-c', 'curl -sfo /dev/null http://evil.test/'])
      expect([fails.status, fails.stderr]).toEqual([
        22,
        'pen: refused: evil.test:80; to allow it: pen allow evil.test:80\n',
      ])
      // A refusal of another command is not printed again, nor after a command that succeeded.
      expect(project.command(['exec', '--', 'false']).stderr).toBe('')
      const well = project.command(['exec', '--', '/bin/sh', '-c', get('http://evil.test/')])
      expect([well.stdout, well.stderr]).toEqual(['403 ', ''])
      const line = 'pen: refused: evil.test:80 (2 times); to allow it: pen allow evil.test:80\n'
      expect(project.command(['restart']).stderr).toBe(line)
      expect(project.pen(...dial)).toBe('403 403 ')
      expect(project.command(['stop']).stderr).toBe(line)
      expect(project.command(['start', '--detach', '--backend', 'process']).status).toBe(0)
      expect(project.command(['stop'])).toMatchObject({ status: 0, stderr: '' })
    } finally {
      project.pen('stop')
    }
  },
  { users: 'ordinary' },
)
