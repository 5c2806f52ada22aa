/** A machine with narrow limits and `tools.exec: "listed"`, which the guest's own kernel enforces. */
import { afterAll, beforeAll, expect } from 'bun:test'
import { EVERYBODY } from '../conformance/launcher.ts'
import { events } from '../conformance/limit-events.ts'
import type { ProjectSandbox } from '../lifecycle/project-sandbox.ts'
import { hasQemu, onMachine, projectOf, startMachine } from './machine.ts'

const who = EVERYBODY.at(-1)
const LIMITS = ['pids=8', 'files=40', 'disk=48MiB'].flatMap(limit => ['--limit', limit])
let started: ProjectSandbox | undefined

const here = (): ProjectSandbox => {
  if (started === undefined) throw new Error('the machine did not start')
  return started
}

beforeAll(async () => {
  if (who === undefined || !hasQemu) return
  started = projectOf(who, { tools: { exec: 'listed' } })
  await startMachine(started, ...LIMITS)
}, 120_000)

afterAll(async () => {
  await started?.pen('stop')
  started?.box.remove()
})

const TRY = `
run() { "$@" >/dev/null 2>&1 && echo "ran $*"; }
for place in . /tmp /dev/shm "$HOME"; do
  cp /usr/bin/true $place/own
  run $place/own
  run /lib64/ld-linux-x86-64.so.2 $place/own
done
cp /lib/x86_64-linux-gnu/libz.so.1 own.so
LD_PRELOAD=$PWD/own.so /usr/bin/true
run python3 -c 'import os; os.memfd_create("x")'
run /usr/bin/true
run pen version
`

onMachine(
  'P12 with "listed" no file that the guest writes is executed or mapped, and the system’s are',
  async () => {
    const { stdout, stderr } = await here().sh(TRY)
    expect(stdout.trim().split('\n')).toEqual(['ran /usr/bin/true', 'ran pen version'])
    expect(stderr).toContain('cannot be preloaded')
  },
)

// The last claim: it ends the machine.
onMachine(
  'P13 small limits are the guest’s, not those of QEMU; what virtiofsd writes for it counts',
  async () => {
    expect((await here().sh('bash -c "ulimit -u; ulimit -n"')).stdout).toBe('8\n40\n')
    const { code, stdout } = await here().sh(
      'head -c 60M /dev/zero >/tmp/big; exec 3>gone; rm gone; head -c 60M /dev/zero >&3; sleep 20; echo survived',
    )
    expect([code === 0, stdout]).toEqual([false, ''])
    expect(events(here().box)).toEqual(['disk refused', 'disk killed'])
  },
)
