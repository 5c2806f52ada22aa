/** A hostile program swaps directories, files and the granted directory for links, as fast as the kernel allows. */
import { expect } from 'bun:test'
import { spawn, spawnSync } from 'node:child_process'
import {
  closeSync,
  constants,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { walkBeneath } from '../../src/base/beneath/open-beneath.ts'
import { FileRefused } from '../../src/guest/broker-client.ts'
import { BrokerWorld, chunks, SECRET } from '../file-broker/world.ts'
import { skipUnless } from '../skip.ts'

const onLinux = skipUnless(
  process.platform === 'linux' && spawnSync('python3', ['-c', 'import ctypes']).status === 0,
  'python3 is missing',
)

const SECONDS = 10

onLinux(
  'P1 ten seconds of swapping granted paths for links leak and change nothing; grants still work',
  async () => {
    await using world = await BrokerWorld.start({
      limits: { requestBurst: 1_000_000, requestsPerSecond: 1_000_000 },
    })
    writeFileSync(join(world.closed, 'f'), SECRET)
    mkdirSync(join(world.closed, 'deep'))
    writeFileSync(join(world.closed, 'deep/f'), SECRET)
    world.file('d/f', 'mine')
    world.file('d/deep/f', 'mine')
    symlinkSync(world.closed, join(world.open, 'dl'))
    world.file('f', 'mine')
    symlinkSync(join(world.closed, 'secret'), join(world.open, 'fl'))
    world.file('still', 'mine')
    symlinkSync(world.closed, join(world.root, 'rl'))
    world.grants = [world.grant(world.open, { write: true })]
    const before = readdirSync(world.closed)

    const names = ['open/d', 'open/dl', 'open/f', 'open/fl'].map(name => join(world.root, name))
    const roots = [world.open, join(world.root, 'rl')]
    const swapper = spawn('python3', [join(import.meta.dir, 'swap.py'), String(SECONDS), ...names, ...roots])
    let swapped = ''
    swapper.stdout.on('data', (data: Buffer) => {
      swapped += data.toString()
    })
    const ended = new Promise(resolve => swapper.once('close', resolve))
    while (!swapped.includes('swapping')) await Bun.sleep(1)

    const seen = new Map<string, number>()
    const note = (what: string) => seen.set(what, (seen.get(what) ?? 0) + 1)
    const client = await world.client()
    const root = openSync(world.root, constants.O_RDONLY | constants.O_DIRECTORY)
    for (const end = performance.now() + SECONDS * 1000 - 200; performance.now() < end; ) {
      for (const name of ['d/f', 'd/deep/f', 'f', 'still'])
        try {
          const pieces: Buffer[] = []
          await client.read(join(world.open, name), () => bytes => void pieces.push(Buffer.from(bytes)))
          note(`read ${Buffer.concat(pieces)}`)
        } catch (error) {
          if (!(error instanceof FileRefused)) throw error
          note(error.refusal.reason)
        }
      try {
        await client.write(join(world.open, 'd/new'), chunks('written'), false)
        note('wrote')
      } catch (error) {
        if (!(error instanceof FileRefused)) throw error
      }
      note(byWalk(root, ['open', 'd', 'f']))
    }
    closeSync(root)
    client.close()
    await ended

    expect([...seen.keys()].filter(what => what.includes(SECRET))).toEqual([])
    // The race took place: the broker met both links and files.
    expect(Number(swapped.split('\n')[1])).toBeGreaterThan(10_000)
    for (const what of ['read mine', 'walked mine', 'link', 'wrote'])
      expect([what, seen.get(what) ?? 0]).not.toEqual([what, 0])
    expect(readdirSync(world.closed)).toEqual(before)
    expect(readFileSync(join(world.closed, 'secret'), 'utf8')).toBe(SECRET)
    const denials = world.events.filter(event => event.kind === 'broker-denied')
    expect(denials.length).toBeGreaterThanOrEqual(seen.get('link') ?? 0)
  },
  SECONDS * 1000 + 20_000,
)

/** The fallback for kernels without openat2. */
function byWalk(root: number, names: readonly string[]): string {
  let place: number | undefined
  try {
    place = walkBeneath(root, names)
    return `walked ${readFileSync(`/proc/self/fd/${place}`, 'utf8')}`
  } catch {
    return 'walked into a link'
  } finally {
    if (place !== undefined) closeSync(place)
  }
}
