/** A snapshot that does not load costs only time. */
import { beforeAll, expect } from 'bun:test'
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { onMachine } from '../vm/machine.ts'
import { CANARY, COLD, cache, fileOf, here, run, takeSnapshot, way } from '../vm/snapshots.ts'

beforeAll(takeSnapshot, 120_000)

const xxh3 = (bytes: Uint8Array): string => Bun.hash.xxHash3(bytes).toString(16)

const DAMAGE: Readonly<Record<string, () => void>> = {
  'memory has a changed byte': () => {
    const ram = readFileSync(fileOf('ram'))
    ram[ram.length >> 1] = (ram[ram.length >> 1] ?? 0) ^ 1
    writeFileSync(fileOf('ram'), ram)
  },
  'state is none that QEMU accepts': () => {
    const state = Buffer.from('no state of a machine')
    const manifest = JSON.parse(readFileSync(fileOf('manifest.json'), 'utf8')) as object
    writeFileSync(fileOf('state'), state)
    writeFileSync(fileOf('manifest.json'), JSON.stringify({ ...manifest, state: xxh3(state) }))
  },
}

for (const [what, damage] of Object.entries(DAMAGE))
  onMachine(
    `P20 a snapshot whose ${what} is replaced, and the start boots cold`,
    async () => {
      damage()
      const { code, stdout, ...ran } = await run()
      expect([code, stdout.endsWith(CANARY)]).toEqual([0, true])
      expect(way({ code, stdout, ...ran })).toEqual(['the snapshot was not used', ...COLD])
      expect(way(await run())).toEqual(['guest restored'])
    },
    120_000,
  )

onMachine(
  'P20 a daemon disk that is damaged fails one start, and the next one makes it again',
  async () => {
    const { home } = here()
    const dir = join(home, '.pen/cache/vm')
    for (const disk of readdirSync(dir).filter(name => name.startsWith('daemon-'))) {
      // The seed has hard links to the same file.
      rmSync(join(dir, disk))
      here().file(join(dir, disk), 'no disk', 0o600)
    }
    rmSync(cache(), { recursive: true, force: true })
    const failed = await run()
    expect([failed.code, failed.stdout]).toEqual([125, ''])
    expect(failed.stderr).toContain('the virtual machine did not start')
    expect(way(await run())).toEqual(COLD)
  },
  120_000,
)
