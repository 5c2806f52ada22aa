/**
 * Whichever process dies while a container starts, at any moment: the next command has a working one, and
 * nothing else is left.
 */
import { expect } from 'bun:test'
import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { everyEngine } from '../engines/every-engine.ts'
import type { TestEngine } from '../engines/test-engine.ts'
import { tinyImage } from '../images/tiny.ts'
import { Workshop } from '../images/workshop.ts'
import { until } from '../until.ts'

const onEachEngine = everyEngine()
const MOMENTS = 5

/** How many of a hundred orphans stay zombies. */
const ORPHANS = `for i in $(seq 100); do (setsid sh -c "sleep 0.0$((i % 7)) & exit 0" &); done
while pgrep -x sleep > /tmp/sleeping; do :; done; sleep 0.2; cat /proc/[0-9]*/stat | grep -c ") Z "`

class Mortal extends Workshop {
  constructor(engine: TestEngine) {
    super(engine)
    this.configure({ profile: 'coding', backend: engine.backend, network: { offline: true } })
    this.dockerfile(tinyImage())
    const built = this.agreeAndBuild()
    if (built.code !== 0) throw new Error(`${built.out}${built.err}`)
  }

  begin(): ChildProcess {
    const [program = '', ...rest] = this.words('start', '--detach').argv
    return spawn(program, rest, { stdio: 'ignore' })
  }

  supervisor(): number | undefined {
    const lock = join(this.stateDir, 'supervisor.lock')
    return existsSync(lock) ? Number(readFileSync(lock, 'utf8').split(' ')[0]) || undefined : undefined
  }

  /** Processes that have this sandbox's state in their mounts: its own, wherever they are. */
  processes(): number[] {
    return readdirSync('/proc')
      .map(Number)
      .filter(pid => pid > 1 && mountsOf(pid).includes(`${this.stateDir}/containers/`))
  }

  left(): string[] {
    const id = this.stateDir.slice(this.stateDir.lastIndexOf('/') + 1)
    return this.ask('ps', '--all', '--quiet', '--filter', `label=pen.sandbox=${id}`)
      .out.split('\n')
      .filter(Boolean)
  }
}

function mountsOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
  } catch {
    return ''
  }
}

/** Gone with its lock: the file exists for a moment before its pid is in it. */
function signalled(pid: number | undefined): boolean {
  try {
    return pid !== undefined && process.kill(pid, 'SIGKILL')
  } catch {
    return false
  }
}

onEachEngine(
  'P4 P14 P17 orphans are reaped; a supervisor killed during a start takes its container along',
  async engine => {
    using here = new Mortal(engine)
    const began = performance.now()
    expect(here.pen('start', '--detach')).toMatchObject({ code: 0 })
    const took = performance.now() - began
    expect(here.processes()).not.toEqual([])
    expect(here.pen('exec', '--', 'bash', '-c', ORPHANS)).toMatchObject({ out: '0\n' })
    expect(here.pen('stop')).toMatchObject({ code: 0 })
    for (let moment = 0; moment < MOMENTS; moment++) {
      const starter = here.begin()
      const ended = new Promise(resolve => starter.once('exit', resolve))
      await until(() => here.supervisor() !== undefined)
      await Bun.sleep((took * moment) / MOMENTS)
      signalled(here.supervisor())
      await ended
      await until(() => here.processes().length === 0, 2000)
      expect([moment, here.pen('exec', '--', 'echo', 'works')]).toMatchObject([
        moment,
        { code: 0, out: 'works\n' },
      ])
      expect(here.pen('stop')).toMatchObject({ code: 0 })
      expect([moment, here.left(), here.processes(), readdirSync(join(here.stateDir, 'containers'))]).toEqual(
        [moment, [], [], []],
      )
    }
  },
)

/** The supervisor's podman commands. */
function asking(supervisor: number | undefined): number[] {
  const isAsked = (pid: number): boolean => {
    try {
      const [, parent] = /\) \S (\d+) /.exec(readFileSync(`/proc/${pid}/stat`, 'latin1')) ?? []
      return (
        Number(parent) === supervisor && readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes('podman\0')
      )
    } catch {
      return false
    }
  }
  return readdirSync('/proc').map(Number).filter(isAsked)
}

onEachEngine('P4 a podman that is killed while it starts a container leaves no process', async engine => {
  if (engine.backend !== 'podman') return
  using here = new Mortal(engine)
  expect(here.pen('start', '--detach')).toMatchObject({ code: 0 })
  expect(here.pen('stop')).toMatchObject({ code: 0 })
  for (const wait of [30, 45, 60]) {
    const starter = here.begin()
    const ended = new Promise(resolve => starter.once('exit', resolve))
    await until(() => starter.exitCode !== null || asking(here.supervisor()).length > 0)
    await Bun.sleep(wait)
    for (const pid of asking(here.supervisor())) signalled(pid)
    await ended
    here.pen('stop')
    await until(() => here.processes().length === 0, 2000)
  }
  expect(here.pen('exec', '--', 'echo', 'works')).toMatchObject({ code: 0, out: 'works\n' })
  expect(here.pen('stop')).toMatchObject({ code: 0 })
})
