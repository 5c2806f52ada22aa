/** What is left when a part of a virtual machine is killed: nothing, and the next start works. */
import { expect } from 'bun:test'
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { adoptOrphans, descendants, untilAlone } from '../conformance/descendants.ts'
import { EVERYBODY, isRoot } from '../conformance/launcher.ts'
import { Recorder } from '../library/recorder.ts'
import type { ProjectSandbox } from '../lifecycle/project-sandbox.ts'
import { until } from '../until.ts'
import { onMachine, projectOf, startMachine } from './machine.ts'

adoptOrphans()

const NONE = '0'.repeat(16)

const who = EVERYBODY.at(-1)
const pids = (): Set<number> => new Set(descendants().map(({ pid }) => pid))

async function inProject(body: (here: ProjectSandbox) => Promise<void>): Promise<void> {
  if (who === undefined) return
  const here = projectOf(who)
  try {
    await body(here)
  } finally {
    await here.pen('stop')
    here.box.remove()
  }
}

const PARTS: readonly (readonly [name: string, find: (here: ProjectSandbox) => number | undefined])[] = [
  ['QEMU', () => find(/^\S*qemu-system/)],
  ['the file server of the tree', () => find(/virtiofsd .*--shared-dir \/$/)],
  ['the file server of the project', () => find(/virtiofsd .*--shared-dir \/.+/)],
  ['the supervisor', here => here.supervisor()],
]

const find = (command: RegExp): number | undefined =>
  descendants().find(one => command.test(one.command) && !one.command.includes('kill -9'))?.pid

const word = (pid: number, name: string): string =>
  new RegExp(`^${name}:\\s+(\\S+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? ''

onMachine(
  'P10 P12 P13 QEMU is confined and reaches only the gateway, virtiofsd nothing; freed memory returns',
  () =>
    inProject(async here => {
      here.box.file('inside', 'inside')
      const outside = here.box.file(join(here.box.home, 'outside'), 'outside')
      const recorder = await Recorder.open()
      await startMachine(here, '--allow', recorder.target)
      for (const [name, pidOf] of PARTS.slice(0, 3)) {
        const pid = pidOf(here) ?? 0
        const marks = ['CapEff', 'CapBnd', 'NoNewPrivs', 'Seccomp'].map(mark => word(pid, mark))
        expect([name, ...marks]).toEqual([name, NONE, NONE, '1', '2'])
        expect([name, word(pid, 'Uid') === '0']).toEqual([name, false])
        const sees = (path: string): boolean => existsSync(`/proc/${pid}/root${path}`)
        expect([name, sees(outside), sees(join(here.box.home, '.pen/cache'))]).toEqual([name, false, false])
        expect([name, sees(join(here.box.project, 'inside'))]).toEqual([name, name !== 'QEMU'])
        const cards = readFileSync(`/proc/${pid}/net/dev`, 'utf8').match(/^ *\w+(?=:)/gm)
        expect([name, cards?.map(card => card.trim())]).toEqual([name, ['lo']])
        for (const kind of NAMESPACES)
          expect([name, kind, namespace(pid, kind)]).not.toEqual([name, kind, namespace('self', kind)])
        if (isRoot)
          expect([name, await reached(pid, recorder)]).toEqual([name, name === 'QEMU' ? ['/by-rule'] : []])
      }
      recorder.close()
      await returnsMemory(here)
    }),
  120_000,
)

const NAMESPACES = ['net', 'pid', 'mnt', 'ipc', 'uts', 'user']
const namespace = (pid: number | 'self', kind: string): string => readlinkSync(`/proc/${pid}/ns/${kind}`)

/** What a program of the host gets with the network of this process: the allowed host through the gateway, no other. */
async function reached(pid: number, recorder: Recorder): Promise<readonly string[]> {
  const port = recorder.target.split(':')[1]
  const urls = ['127.0.0.1', '[::1]', '10.0.2.2', '192.0.2.1', '198.51.100.7'].map(
    host => `http://${host}:${port}`,
  )
  const script = `curl -s -m 5 -x http://127.0.0.1:1023 http://${recorder.target}/by-rule
for url in ${urls.join(' ')}; do curl -s -m 5 "$url/around"; done; exit 0`
  const before = recorder.seen.length
  const child = Bun.spawn(['nsenter', '-t', String(pid), '-n', 'sh', '-c', script], {
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  expect(await child.exited).toBe(0)
  return recorder.seen.slice(before)
}

/** The guest's memory is QEMU's largest file. */
function heldMemory(): number {
  const dir = `/proc/${find(/^\S*qemu-system/) ?? 0}/fd`
  return Math.max(...readdirSync(dir).map(fd => statSync(`${dir}/${fd}`).blocks * 512)) / 2 ** 20
}

async function returnsMemory(here: ProjectSandbox): Promise<void> {
  const before = heldMemory()
  const hold = 'import time; held = bytearray(b"x") * (400 << 20); print("held", flush=True); time.sleep(600)'
  const command = here.start(['exec', '--', 'python3', '-c', hold], { timeoutMs: 100_000 })
  await command.printed('held')
  expect(heldMemory()).toBeGreaterThan(before + 350)
  command.child.kill('SIGTERM')
  await command.ended
  await until(async () => heldMemory() < before + 100, 60_000)
}

for (const [name, pidOf] of PARTS)
  onMachine(
    `P17 when ${name} is killed, the command ends and nothing is left`,
    () =>
      inProject(async here => {
        const known = pids()
        await startMachine(here)
        const command = here.start(['exec', '--', '/bin/sh', '-c', 'echo up; sleep 300'], {
          timeoutMs: 100_000,
        })
        await command.printed('up')
        const pid = pidOf(here)
        expect([name, pid]).toEqual([name, expect.any(Number)])
        process.kill(pid ?? 0, 'SIGKILL')
        expect((await command.ended).code).not.toBe(0)
        expect(await untilAlone(known, 5000)).toEqual([])
        expect(here.leftovers()).toEqual([])
        expect(readdirSync(here.stateDir).filter(left => left.startsWith('.vm-'))).toEqual([])
      }),
    240_000,
  )

for (const [name, pidOf] of PARTS.slice(0, 3))
  onMachine(
    `P20 when ${name} ends before the guest is ready, the error says which part ended, and how`,
    () =>
      inProject(async here => {
        rmSync(join(here.box.home, '.pen/cache/vm-snapshots'), { recursive: true, force: true })
        const starting = here.box.start(['true'])
        await until(() => pidOf(here) !== undefined, 20_000)
        process.kill(pidOf(here) ?? 0, 'SIGKILL')
        const { code, stderr } = await starting.ended
        expect(code).toBe(125)
        expect(stderr).toContain('the virtual machine did not start (')
        expect(stderr).toContain(name === 'QEMU' ? 'QEMU ended with signal 9' : 'ended with exit code 137')
      }),
    120_000,
  )

onMachine(
  'P20 when QEMU ends while it restores a snapshot, the same start boots cold',
  () =>
    inProject(async here => {
      expect((await here.box.run(['true'], { timeoutMs: 100_000 })).code).toBe(0)
      const starting = here.box.start(['echo', 'works'])
      await until(() => find(/^\S*qemu-system.* -incoming /) !== undefined, 20_000)
      process.kill(find(/^\S*qemu-system.* -incoming /) ?? 0, 'SIGKILL')
      const { code, stdout, stderr } = await starting.ended
      expect([code, stdout, stderr]).toEqual([0, 'works\n', expect.not.stringContaining('INTERNAL')])
    }),
  120_000,
)

onMachine(
  'P17 a start that is killed while the guest boots leaves nothing, and the next one works',
  () =>
    inProject(async here => {
      const known = pids()
      for (const ms of [50, 300, 1500]) {
        const starting = here.box.start(['sleep', '100'], { through: 'exec "$@"' })
        await Bun.sleep(ms)
        starting.child.kill('SIGKILL')
        await starting.ended
        expect([ms, await untilAlone(known, 5000)]).toEqual([ms, []])
      }
      const again = await here.box.run(['echo', 'again'], { timeoutMs: 100_000 })
      expect(again).toMatchObject({ code: 0, stdout: 'again\n' })
    }),
  120_000,
)
