import { expect } from 'bun:test'
import { closeSync, fchownSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { EXIT } from '../../src/base/error.ts'
import { openPtyPair } from '../../src/terminal/pty.ts'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'
import { PEN, SLOWER } from './launcher.ts'

/** A run on a terminal that shows nothing until it is resumed, like one behind a stalled connection. */
function onStalledTerminal(box: Box, ...words: readonly string[]) {
  const { who } = box.launcher
  // A held name is not even looked up: nothing of this leaves the machine.
  const flags = box.launcher.flags.filter(flag => flag !== '--offline')
  const { master, slave } = openPtyPair({ cols: 80, rows: 24 })
  fchownSync(slave, who.uid, who.gid)
  const child = Bun.spawn([...who.become, PEN, 'run', ...flags, ...words], {
    cwd: box.project,
    env: box.env(),
    stdio: [slave, slave, slave],
  })
  closeSync(slave)
  return { child, show: () => shownOn(master) }
}

async function shownOn(master: number): Promise<string> {
  let seen = ''
  try {
    for await (const bytes of Bun.file(master).stream()) seen += Buffer.from(bytes).toString()
  } catch {
    // Its last holder is gone.
  }
  closeSync(master)
  return seen
}

const sizeOf = (file: string): number => statSync(file, { throwIfNoEntry: false })?.size ?? 0

/** Waits until it has grown and then stays the same. */
async function untilStill(file: string, withinMs: number): Promise<boolean> {
  const late = performance.now() + withinMs
  let last = { size: 0, since: performance.now() }
  while (performance.now() < late) {
    const size = sizeOf(file)
    if (size !== last.size) last = { size, since: performance.now() }
    else if (size > 0 && performance.now() - last.since > 1000) return true
    await Bun.sleep(20)
  }
  return false
}

const FLOOD = 'yes & while :; do echo x >> beat; sleep 0.05; done'

/** pen reports it with more text than a full buffer could have room for by chance. */
const LONG = `${`${'a'.repeat(60)}.`.repeat(4)}com`
const DIAL = `(sleep 0.5; bash -c "exec 3<>/dev/tcp/${LONG}/443") &`

conformance(
  'P13 a blocked terminal stops no timer: the wall time ends the sandbox',
  async box => {
    const wall = 2 * SLOWER
    const words = ['--ask', '--wall', `${wall}s`, '--', 'sh', '-c', `${DIAL} ${FLOOD}`]
    const { child, show } = onStalledTerminal(box, ...words)
    expect(await untilStill(join(box.project, 'beat'), 20_000)).toBe(true)
    const seen = await show()
    expect(await child.exited).toBe(EXIT.timeout)
    expect(seen.slice(-2000)).toContain(`limits.wall is ${wall} s`)
  },
  { users: 'ordinary' },
)

conformance(
  'P14 a blocked terminal delays no signal, and once resumed it has lost no output',
  async box => {
    const { child, show } = onStalledTerminal(box, '--', 'sh', '-c', FLOOD)
    const beat = join(box.project, 'beat')
    for (let i = 0; i < 1000 && sizeOf(beat) < 40; i++) await Bun.sleep(20)
    child.kill('SIGTERM')
    expect(await untilStill(beat, 20_000)).toBe(true)
    await show()
    expect(await child.exited).toBeGreaterThan(128)

    // More than every buffer on the way can hold.
    const count = 'i=0; while [ $i -lt 100000 ]; do i=$((i+1)); echo "line $i"; done'
    const slow = onStalledTerminal(box, '--', 'sh', '-c', `echo x > begun; ${count}; echo x > counted`)
    for (let i = 0; i < 1000 && sizeOf(join(box.project, 'begun')) === 0; i++) await Bun.sleep(20)
    await Bun.sleep(500)
    // The kernel holds it back: pen has not buffered it.
    expect(sizeOf(join(box.project, 'counted'))).toBe(0)
    const shown = await slow.show()
    expect([...shown.matchAll(/line (\d+)\r\n/g)].every(([, n], i) => Number(n) === i + 1)).toBe(true)
    expect(shown.slice(-40)).toEndWith('line 100000\r\n')
    expect(await slow.child.exited).toBe(0)
  },
  { users: 'ordinary' },
)
