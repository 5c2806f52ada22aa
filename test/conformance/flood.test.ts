/**
 * Large trees and many names that a sandbox makes at protected places never delay the supervisor's timers or its control
 * socket.
 */
import { expect } from 'bun:test'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { auditRecords } from '../audit-records.ts'
import { Stopwatch } from '../stopwatch.ts'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'
import { SLOWER } from './launcher.ts'
import { pen, stateDir } from './pen-command.ts'

const NAMES = '.vscode .idea .fleet .zed .helix .nova'.split(' ')
const OF_THE_SUPERVISOR = 'what is claimed is the supervisor’s own work, the same for every backend'

/**
 * One directory of 20,000 names for each protected name. Hard links: creating them is five times as fast as
 * files.
 */
function fill(box: Box): void {
  box.host(`python3 -c '
import os
for d in range(${NAMES.length}):
    os.mkdir("d%d" % d)
    os.close(os.open("d%d/f" % d, os.O_CREAT))
    for f in range(20000): os.link("d%d/f" % d, "d%d/%d" % (d, f))'`)
}

const FLOOD = `python3 -c '
import os, time
for d, name in enumerate("${NAMES.join(' ')}".split()): os.rename("d%d" % d, name)
print("renamed", flush=True); time.sleep(60)'`

conformance(
  'P14 a timeout and a stop are on time while large directories land on protected names',
  async box => {
    fill(box)
    const wall = new Stopwatch()
    const { code, stderr } = await box.sh(FLOOD, { flags: ['--limit', 'wall=1s'] })
    expect([code, wall.ms < 3000]).toEqual([124, true])
    expect(readdirSync(box.project)).toEqual([])
    expect(stderr).toContain(`${join(box.project, '.vscode')} appeared (directory)`)

    fill(box)
    expect((await pen(box, 'start', '--offline', '--backend', 'process')).code).toBe(0)
    expect((await pen(box, 'exec', '--', 'sh', '-c', `${FLOOD} & sleep 0.4`)).code).toBe(0)
    const stop = new Stopwatch()
    expect((await pen(box, 'stop')).code).toBe(0)
    expect(stop.ms).toBeLessThan(2000)
    expect(readdirSync(box.project)).toEqual([])
  },
  { timeout: 180_000, once: OF_THE_SUPERVISOR, alone: true, only: ({ who }) => who.uid !== 0 },
)

/** Each takes a hundred times as long in a guest without KVM. */
const COUNT = SLOWER === 1 ? 40_000 : 2_000

conformance(
  'P3 a flood of new names hides no planted file, and does not end the sandbox',
  async box => {
    const script = `
import os, time
planted = seen = 0
for i in range(${COUNT}):
    os.close(os.open("n", os.O_CREAT)); os.rename("n", "m")
    if i == ${COUNT / 2}: os.close(os.open(".envrc", os.O_CREAT)); planted = time.time()
    if planted and not seen and not os.path.exists(".envrc"): seen = time.time()
os.remove("m"); time.sleep(1); print(seen or not os.path.exists(".envrc"), seen - planted < 5)`
    const { code, stdout } = await box.sh(`python3 -c '${script}'`)
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^(?:True|\d.*) True\n$/)])
    expect(readdirSync(box.project)).toEqual([])
  },
  { timeout: 120_000, users: 'ordinary' },
)

conformance(
  'P3 a sandbox that plants again and again is ended; one that plants twice goes on',
  async box => {
    const plant = (times: number): string => `python3 -c '
import os, time
for i in range(${times}):
    while os.path.exists(".vscode"): time.sleep(0.001)
    os.mkdir(".vscode")
time.sleep(1); print("went on")'`
    expect(await box.sh(plant(2))).toMatchObject({ code: 0, stdout: 'went on\n' })
    const { code, stdout, stderr } = await box.sh(plant(50))
    expect([code, stdout, stderr]).toEqual([137, '', expect.stringContaining('again and again')])
    const reasons = auditRecords(stateDir(box)).flatMap(({ kind, reason }) =>
      kind === 'run-end' ? [reason] : [],
    )
    expect(reasons).toEqual([undefined, expect.stringContaining('again and again')])
    expect(readdirSync(box.project)).toEqual([])
  },
  { once: OF_THE_SUPERVISOR, users: 'ordinary' },
)
