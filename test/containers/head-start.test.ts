/**
 * pen asks the engine for the last container while it still makes the plan. Judged by what the engine did and
 * by what is seen inside.
 */
import { expect } from 'bun:test'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  existsSync,
  lstatSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import type { TestEngine } from '../engines/test-engine.ts'
import { within } from '../until.ts'
import { ContainerProject } from './sandbox.ts'

const onEachEngine = everyEngine(['podman', 'docker'], { podman: 'in turn' })

/** With a root helper, pen asks for more than the engine. */
const beginsAhead = ({ backend, who }: TestEngine): boolean => backend === 'podman' || who.uid === 0

class StartedProject extends ContainerProject {
  get record(): string {
    return join(this.stateDir, 'last-container.json')
  }

  /** Starts and stops it. Returns the command's output and the number of containers that the engine made. */
  cycle(command: readonly string[], ...flags: readonly string[]): { said: string; made: number } {
    const since = Date.now()
    const started = this.pen('start', '--detach', '--backend', this.engine.backend, '--offline', ...flags)
    if (started.code !== 0) throw new Error(`not started: ${started.err}`)
    const said = this.pen('exec', '--', ...command).out
    this.pen('stop')
    const [until, name] =
      this.engine.backend === 'podman'
        ? [['--stream=false'], '{{.Name}}']
        : [['--until', seconds(Date.now())], '{{.Actor.Attributes.name}}']
    const filters = ['--filter', 'event=create', '--filter', 'type=container']
    const events = this.ask('events', ...until, '--since', seconds(since), ...filters, '--format', name)
    return { said, made: events.out.split('\n').filter(line => line === `pen-${this.id}`).length }
  }

  get id(): string {
    return this.stateDir.slice(this.stateDir.lastIndexOf('/') + 1)
  }
}

const seconds = (ms: number): string => (ms / 1000).toFixed(3)

onEachEngine('P4 a start like the last makes one container, begun before the plan is ready', async engine => {
  using project = new StartedProject(engine)
  expect(project.cycle(['hostname'])).toEqual({ said: 'pen\n', made: 1 })
  if (!beginsAhead(engine)) return
  const { mode, uid } = lstatSync(project.record)
  expect([mode & 0o777, uid]).toEqual([0o600, engine.who.uid])
  expect(project.cycle(['hostname'])).toEqual({ said: 'pen\n', made: 1 })
  // The guess differs from the plan: its container was begun, and nothing of it is left.
  writeFileSync(
    project.record,
    readFileSync(project.record, 'utf8').replace('"hostname":"pen"', '"hostname":"guess"'),
  )
  expect(project.cycle(['hostname'])).toEqual({ said: 'pen\n', made: 2 })
  expect(project.containers()).toEqual([])
  expect(project.build('--offline').code).toBe(0)
  expect(existsSync(project.record)).toBe(false)
  expect(project.cycle(['hostname'])).toEqual({ said: 'pen\n', made: 1 })
})

onEachEngine('P2 what the user changes since the last start holds in the next', async engine => {
  using project = new StartedProject(engine)
  const outside = project.box.directory(join(project.box.home, 'outside'))
  project.box.file(join(outside, 'f'), 'OUTSIDE')
  const look = ['sh', '-c', `cat ${outside}/f 2>&1 | tail -n 1; ulimit -n`]
  expect(project.cycle(look, '--read', outside).said).toBe('OUTSIDE4096\n')
  const { said, made } = project.cycle(look, '--limit', 'files=1000')
  expect([said, made]).toEqual([expect.stringMatching(/No such file or directory\n1000\n$/), 1])
  expect(project.pen('config', 'set', 'limits.files', '900').code).toBe(0)
  expect(project.cycle(look)).toEqual({ said: expect.stringMatching(/\n900\n$/), made: 1 })
})

onEachEngine('P8 a start stores none of its secrets; a broken guess is ignored', async engine => {
  using project = new StartedProject(engine)
  const secret = ['--env', 'TOKEN=s3cr3t-of-this-start']
  expect(project.cycle(['printenv', 'TOKEN'], ...secret).said).toBe('s3cr3t-of-this-start\n')
  if (!beginsAhead(engine)) return
  expect(readFileSync(project.record, 'utf8')).not.toContain('s3cr3t')
  for (const broken of ['{', '{"key":1,"shape":null}']) {
    writeFileSync(project.record, broken)
    expect(project.cycle(['hostname'])).toEqual({ said: 'pen\n', made: 1 })
  }
  const elsewhere = project.box.file(join(project.box.home, 'elsewhere'), 'untouched')
  rmSync(project.record)
  symlinkSync(elsewhere, project.record)
  expect(project.cycle(['hostname'])).toEqual({ said: 'pen\n', made: 1 })
  expect(readFileSync(elsewhere, 'utf8')).toBe('untouched')
})

onEachEngine(
  'P4 a container that is retried because the first differed from the plan leaves nothing open',
  async engine => {
    if (engine.backend !== 'podman') return
    using project = new StartedProject(engine)
    const shown = project.box.file(join(project.box.home, 'shown'), 'shown')
    const start = ['start', '--detach', '--backend', 'podman', '--read', shown, '--allow', 'a.example.com']
    expect(project.pen(...start).code).toBe(0)
    project.pen('stop')
    const containers = join(project.stateDir, 'containers')
    const mounted = (): boolean =>
      readdirSync(containers).some(run => existsSync(join(containers, run, 'pid')))
    for (let round = 0; round < 3; round++) {
      const [program = '', ...rest] = project.words(...start).argv
      const starting = spawn(program, rest, { stdio: 'ignore' })
      const ended = once(starting, 'exit')
      // The engine's mount may differ from what pen finds there. Which comes first is a race.
      expect(await within(30_000, mounted)).toBe(true)
      renameSync(project.box.file(`${shown}-next`, `shown ${round}`), shown)
      expect(await ended).toEqual([0, null])
      expect(project.pen('exec', '--', 'cat', shown).out).toStartWith('shown')
      const [supervisor = ''] = readFileSync(join(project.stateDir, 'supervisor.lock'), 'utf8').split(' ')
      const open = readdirSync(`/proc/${supervisor}/fd`).map(fd => linkOf(`/proc/${supervisor}/fd/${fd}`))
      expect(open.filter(link => link.startsWith('net:')).length).toBe(1)
      project.pen('stop')
    }
  },
)

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}
