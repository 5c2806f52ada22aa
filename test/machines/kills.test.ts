/**
 * SIGKILL of QEMU, a file server or the supervisor at random moments: nothing is left, and the next start works. More
 * moments, or the same again: PEN_VM_KILLS=50, PEN_VM_SEED=12345.
 */
import { expect } from 'bun:test'
import { readdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Box } from '../conformance/box.ts'
import { adoptOrphans, descendants, mountsAbout, untilAlone } from '../conformance/descendants.ts'
import { EVERYBODY, launcherOf, onMachines } from '../conformance/launcher.ts'
import { prng } from '../fuzz/prng.ts'
import { onMachine } from '../vm/machine.ts'

adoptOrphans()

const MOMENTS = Number(process.env['PEN_VM_KILLS'] ?? 4)
const SEED = Number(process.env['PEN_VM_SEED'] ?? Date.now() % 2 ** 31)
/** A cold boot and the first commands are within this time, unless the machine is busy. */
const LATEST_MS = 5000

const PARTS: Readonly<Record<string, RegExp>> = {
  QEMU: /^\S*qemu-system/,
  'the file server of the tree': /virtiofsd .*--shared-dir \/$/,
  'the file server of the project': /virtiofsd .*--shared-dir \/.+/,
  'the supervisor': /\/pen run .*--backend vm/,
}
const NAMES = Object.keys(PARTS) as [string, ...string[]]

const find = (name: string): number | undefined =>
  descendants().find(({ command }) => PARTS[name]?.test(command) && !command.includes('kill -9'))?.pid

onMachine(
  `P17 after a kill at any of ${MOMENTS} moments nothing is left, and the next start works (seed ${SEED})`,
  async () => {
    const who = EVERYBODY.at(-1)
    if (who === undefined) return
    const box = new Box(launcherOf(onMachines(who)))
    const known = new Set(descendants().map(({ pid }) => pid))
    const snapshots = join(box.home, '.pen/cache/vm-snapshots')
    try {
      for (let i = 0; i < MOMENTS; i++) {
        const random = prng(SEED, i)
        const name = random.pick(NAMES)
        const wait = random.below(LATEST_MS)
        const cold = random.below(3) === 0
        const moment = `${i}: ${name} after ${wait} ms, ${cold ? 'cold' : 'restored'}`
        if (cold) rmSync(snapshots, { recursive: true, force: true })
        const run = box.start(['/bin/sh', '-c', 'sleep 30'], { through: 'exec "$@"' })
        await Bun.sleep(wait)
        // A part that is not there yet cannot be killed. The supervisor is always there.
        process.kill(find(name) ?? run.child.pid ?? 0, 'SIGKILL')
        const { code } = await run.ended
        expect([moment, code === 0]).toEqual([moment, false])
        expect([moment, await untilAlone(known, 5000)]).toEqual([moment, []])
        expect([moment, mountsAbout(box.root)]).toEqual([moment, []])
      }
      const again = await box.run(['echo', 'again'], { timeoutMs: 100_000 })
      expect(again).toMatchObject({ code: 0, stdout: 'again\n' })
      expect(readdirSync(snapshots).filter(left => left.startsWith('.'))).toEqual([])
    } finally {
      box.remove()
    }
  },
  60_000 + MOMENTS * 20_000,
)
