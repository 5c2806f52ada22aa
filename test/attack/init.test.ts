/** The init of a sandbox runs as its user, so the sandbox can write its memory. pen relies on nothing in it. */
import { expect } from 'bun:test'
import { copyFileSync, existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from '../conformance/box.ts'
import { conformance } from '../conformance/conformance.ts'
import { adoptOrphans, descendants, untilAlone } from '../conformance/descendants.ts'

adoptOrphans()

const pids = () => new Set(descendants().map(({ pid }) => pid))
/** The program contains machine code. */
const only = () => process.arch === 'x64'

function plant(box: Box): string {
  copyFileSync(join(import.meta.dir, 'take-over-init.py'), join(box.project, 'take-over-init.py'))
  return join(box.project, 'alive')
}
async function stands(file: string): Promise<boolean> {
  const before = existsSync(file) ? readFileSync(file, 'utf8') : ''
  await Bun.sleep(150)
  return (existsSync(file) ? readFileSync(file, 'utf8') : '') === before
}

conformance(
  'P14 an init that was changed to stay after the command is gone before pen ends',
  async box => {
    const alive = plant(box)
    const known = pids()
    const run = await box.run(['/usr/bin/python3', 'take-over-init.py', 'end'])
    expect(run.stdout).toBe('taken\n')
    expect(run.ms).toBeLessThan(2000)
    expect(await untilAlone(known, 100)).toEqual([])
    expect([existsSync(alive), await stands(alive)]).toEqual([true, true])
  },
  { only },
)

for (const signal of ['SIGTERM', 'SIGKILL'] as const)
  conformance(
    `P14 so is one that no longer dies with its parent, when pen gets ${signal}`,
    async box => {
      const alive = plant(box)
      const known = pids()
      const run = box.start(['/usr/bin/python3', 'take-over-init.py', 'stay'], { through: 'exec "$@"' })
      await run.printed('stays')
      run.child.kill(signal)
      await run.ended
      expect(await untilAlone(known, 2000)).toEqual([])
      expect(await stands(alive)).toBe(true)
    },
    { only },
  )

conformance(
  'P14 nor does it outlive the wall time, or a limit that ends the sandbox',
  async box => {
    plant(box)
    const known = pids()
    for (const [code, flags] of [
      [124, ['--wall', '700ms']],
      [137, ['--limit', 'disk=1MiB']],
    ] as const) {
      const fill = flags[0] === '--limit' ? '(sleep 0.5; head -c 64m /dev/zero > big) & ' : ''
      const run = await box.sh(`${fill}exec /usr/bin/python3 take-over-init.py stay`, { flags })
      expect([flags, run.code]).toEqual([flags, code])
      expect(await untilAlone(known, 2000)).toEqual([])
    }
  },
  { only },
)

conformance('P14 a program that writes its own memory is left alone', async box => {
  const { code, stdout } = await box.run([
    '/usr/bin/python3',
    '-c',
    `import ctypes, os
text = ctypes.create_string_buffer(b'before')
os.pwrite(os.open('/proc/self/mem', os.O_RDWR), b'after!', ctypes.addressof(text))
print(text.value.decode())`,
  ])
  expect([code, stdout]).toEqual([0, 'after!\n'])
})
