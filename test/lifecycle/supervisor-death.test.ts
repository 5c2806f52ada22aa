import { expect } from 'bun:test'
import { existsSync, readdirSync, renameSync } from 'node:fs'
import { basename, join } from 'node:path'
import { startTimeOf } from '../../src/base/kernel/processes.ts'
import { adoptOrphans, descendants, untilAlone } from '../conformance/descendants.ts'
import { lives, until } from '../until.ts'
import { lifecycleTest, type ProjectSandbox, START } from './project-sandbox.ts'

adoptOrphans()

/** Its lock exists for a moment before its pid is in it, and may go while it is read. */
function isThere(here: ProjectSandbox): boolean {
  try {
    return here.supervisor() !== undefined
  } catch {
    return false
  }
}

const pids = () => new Set(descendants().map(({ pid }) => pid))

lifecycleTest(
  'P4 P17 a killed supervisor takes the sandbox along within two seconds; the next command recovers',
  async here => {
    const known = pids()
    await here.pen(...START)
    const pid = here.supervisor() ?? 0
    const command = here.start(['exec', '--', '/bin/sh', '-c', '(setsid sleep 100 &); echo up; sleep 100'])
    await command.printed('up')
    process.kill(pid, 'SIGKILL')
    expect((await command.ended).code).toBe(137)
    expect(await untilAlone(known, 2000)).toEqual([])
    expect(await here.pen('status')).toMatchObject({ code: 1 })
    expect(here.leftovers()).toEqual([])
    expect(await here.sh('echo again')).toMatchObject({ code: 0, stdout: 'again\n' })
  },
)

lifecycleTest('P4 a start that is killed at any moment leaves a complete sandbox or none', async here => {
  const known = pids()
  // Once completely, so that the moments below are spread over its duration.
  const began = performance.now()
  await here.pen(...START)
  const took = performance.now() - began
  await here.pen('stop')
  for (let i = 0; i < 8; i++) {
    const starting = here.start(START)
    await Bun.sleep((took * i) / 7)
    starting.child.kill('SIGKILL')
    await starting.ended
    // Either way the next command has one working sandbox.
    expect([i, await here.sh('echo works')]).toMatchObject([i, { code: 0, stdout: 'works\n' }])
    expect(await here.pen('stop')).toMatchObject({ code: 0 })
    expect(await untilAlone(known, 2000)).toEqual([])
    expect(here.leftovers()).toEqual([])
  }
})

lifecycleTest(
  'P4 a supervisor that is killed during its start leaves nothing, and pen start says so',
  async here => {
    const known = pids()
    for (const share of [0.1, 0.4, 0.7, 0.95]) {
      const starting = here.start(START)
      await until(() => isThere(here))
      await Bun.sleep(share * 60)
      const pid = here.supervisor()
      if (pid !== undefined && lives(pid)) process.kill(pid, 'SIGKILL')
      const said = await starting.ended
      if (said.code !== 0) expect(said.stderr).toContain('the supervisor ended before the sandbox was ready')
      expect(await untilAlone(known, 2000)).toEqual([])
      expect(await here.pen('status')).toMatchObject({ code: 1 })
      expect(here.leftovers()).toEqual([])
    }
  },
  { timeout: 90_000 },
)

lifecycleTest(
  'P20 a project that is moved during the start is reported, and not created again',
  async here => {
    const known = pids()
    const { project } = here.box
    for (const wait of [0, 10, 20, 40]) {
      const starting = here.start(START)
      // From then on only the supervisor looks at its path.
      await until(() => isThere(here))
      await Bun.sleep(wait)
      renameSync(project, `${project}-moved`)
      const said = await starting.ended
      if (said.code !== 0) expect(said.stderr).toContain('the project changed')
      expect(existsSync(project)).toBe(false)
      renameSync(`${project}-moved`, project)
      expect(await here.pen('stop')).toMatchObject({ code: 0 })
      expect(await untilAlone(known, 2000)).toEqual([])
    }
    expect(await here.sh('echo works')).toMatchObject({ code: 0, stdout: 'works\n' })
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P19 a record and a lock with an unrelated process’s pid count as stale; that process is untouched',
  async here => {
    await here.pen(...START)
    await here.pen('stop')
    const { stateDir } = here
    const bystander = Bun.spawn(['sleep', '100'])
    const record = {
      version: 1,
      pid: bystander.pid,
      startTime: '1',
      run: 'r',
      workspace: here.box.project,
      backend: 'process',
      isolation: 'process',
      image: null,
      since: new Date().toISOString(),
    }
    const put = (name: string, text: string) => here.box.file(join(stateDir, name), text, 0o600)
    put('supervisor.json', JSON.stringify(record))
    put('supervisor.lock', `${bystander.pid} 1\n`)
    // A socket without a listener.
    here.box.host(`/usr/bin/python3 -c 'import socket; socket.socket(1).bind("${stateDir}/control")'`)
    expect(await here.pen('status')).toMatchObject({ code: 1 })
    expect(await here.pen('stop')).toMatchObject({ code: 0 })
    expect(lives(bystander.pid)).toBe(true)
    expect(here.leftovers()).toEqual([])
    put('supervisor.json', 'half a rec')
    // Mount records of this project's containers: of a dead pen, and of a live one.
    const dead = `pen-${bystander.pid}-1-20240501-120000-2e003b`
    const living = `pen-${process.pid}-${startTimeOf(process.pid)}-20240501-120000-2e003b`
    for (const name of [dead, living]) here.box.directory(join(stateDir, 'containers', name, 'inside'))
    const wouldGo = JSON.parse((await here.pen('gc', '--dry-run', '--json')).stdout)
    expect(wouldGo.leftovers).toContainEqual({ kind: 'record', name: basename(stateDir) })
    expect(wouldGo.leftovers).toContainEqual({ kind: 'directory', name: dead })
    expect(here.leftovers()).not.toEqual([])
    expect(readdirSync(join(stateDir, 'containers')).length).toBe(2)
    expect(await here.pen('gc')).toMatchObject({ code: 0 })
    expect(here.leftovers()).toEqual([])
    expect(readdirSync(join(stateDir, 'containers'))).toEqual([living])
    expect(await here.sh('echo fine')).toMatchObject({ code: 0 })
    bystander.kill()
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P14 a supervisor that hangs is reported, and pen stop still ends it',
  async here => {
    const known = pids()
    await here.pen(...START)
    const pid = here.supervisor() ?? 0
    process.kill(pid, 'SIGSTOP')
    const stopped = await here.start(['stop'], { timeoutMs: 40_000 }).ended
    expect(stopped).toMatchObject({ code: 0 })
    expect(lives(pid)).toBe(false)
    expect(await untilAlone(known, 2000)).toEqual([])
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P14 SIGTERM to a supervisor is a stop: commands are asked, everything ends, the record says so',
  async here => {
    const known = pids()
    await here.pen(...START)
    const pid = here.supervisor() ?? 0
    const command = here.start([
      'exec',
      '--',
      '/bin/sh',
      '-c',
      'trap "echo bye; exit 0" TERM; echo up; while :; do sleep 0.05; done',
    ])
    await command.printed('up')
    process.kill(pid, 'SIGTERM')
    expect(await command.ended).toMatchObject({ stdout: 'up\nbye\n' })
    expect(await untilAlone(known, 2500)).toEqual([])
    expect(here.leftovers()).toEqual([])
    expect(here.audit().at(-1)).toMatchObject({ kind: 'run-end', exitCode: 0 })
  },
)

lifecycleTest(
  'P4 a sandbox whose state was removed by hand ends: no command could find it again',
  async here => {
    const known = pids()
    await here.pen(...START)
    here.box.host(`rm -rf '${here.stateDir}'`)
    expect(await untilAlone(known, 6000)).toEqual([])
  },
  { users: 'ordinary' },
)

lifecycleTest(
  'P3 pen rm after a kill moves what the sandbox left at a protected path, and deletes nothing yet',
  async here => {
    const known = pids()
    await here.pen(...START)
    const pid = here.supervisor() ?? 0
    process.kill(pid, 'SIGSTOP')
    here.box.directory(join(here.box.project, '.vscode'), 0o755)
    process.kill(pid, 'SIGKILL')
    expect(await untilAlone(known, 2000)).toEqual([])
    const refused = await here.pen('rm', '--yes')
    expect(refused).toMatchObject({
      code: 125,
      stderr: expect.stringContaining('.vscode; nothing was removed'),
    })
    expect(existsSync(join(here.box.project, '.vscode'))).toBe(false)
    expect(readdirSync(join(here.stateDir, 'quarantine'))).toHaveLength(1)
    expect(await here.pen('rm', '--yes')).toMatchObject({ code: 0 })
  },
  { users: 'ordinary' },
)
