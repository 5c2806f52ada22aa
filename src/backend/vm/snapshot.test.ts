import { afterAll, expect, test } from 'bun:test'
import {
  closeSync,
  ftruncateSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readSync,
  rmSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { memoryFile } from '../../base/kernel/descriptor.ts'
import { SnapshotCache } from './snapshot.ts'

const cacheDir = mkdtempSync(join(tmpdir(), 'pen-snapshot-'))
afterAll(() => rmSync(cacheDir, { recursive: true, force: true }))

const MIB = 2 ** 20
const PLACES = [0, 3 * MIB + 17, 63 * MIB]

function memory(): number {
  const fd = memoryFile()
  ftruncateSync(fd, 64 * MIB)
  return fd
}

async function saved(key: string): Promise<SnapshotCache> {
  const cache = new SnapshotCache(cacheDir, key)
  const source = memory()
  for (const at of PLACES) writeSync(source, `at ${at}`, at)
  await cache.save(source, async fd => void writeSync(fd, 'devices'))
  closeSync(source)
  return cache
}

/** Whether the snapshot loads, and what is in memory then. */
function loaded(cache: SnapshotCache): { ok: boolean; texts: string[] } | undefined {
  const snapshot = cache.open()
  if (snapshot === undefined) return undefined
  const target = memory()
  const ok = snapshot.load(target)
  const texts = PLACES.map(at => {
    const bytes = Buffer.alloc(16)
    readSync(target, bytes, 0, bytes.length, at)
    return bytes.toString().replaceAll('\0', '')
  })
  snapshot.close()
  closeSync(target)
  return { ok, texts }
}

const dirs = (): string[] => readdirSync(join(cacheDir, 'vm-snapshots'))

test('memory comes back as it was, and another key has no snapshot', async () => {
  const cache = await saved('one')
  expect(loaded(cache)).toEqual({ ok: true, texts: PLACES.map(at => `at ${at}`) })
  expect(new SnapshotCache(cacheDir, 'two').open()).toBeUndefined()
  cache.forget()
  expect(cache.open()).toBeUndefined()
})

test('a changed, shortened or missing file is noticed, and a new snapshot replaces it', async () => {
  for (const name of ['ram', 'state', 'manifest.json'])
    for (const damage of ['changed', '', undefined]) {
      const cache = await saved('damaged')
      const path = join(cacheDir, 'vm-snapshots', dirs()[0] ?? '', name)
      if (damage === undefined) rmSync(path)
      else writeFileSync(path, damage)
      expect([name, damage, loaded(cache)?.ok ?? false]).toEqual([name, damage, false])
      await saved('damaged')
      expect(loaded(cache)?.ok).toBe(true)
      cache.forget()
    }
})

test('a save that fails leaves nothing, and at most four snapshots stay', async () => {
  const cache = new SnapshotCache(cacheDir, 'failing')
  const source = memory()
  const failed = cache.save(source, async () => {
    throw new Error('no state')
  })
  expect(failed).rejects.toThrow('no state')
  await failed.catch(() => undefined)
  closeSync(source)
  expect(dirs()).toEqual([])
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) await saved(key)
  expect(dirs().length).toBe(4)
  expect(loaded(await saved('f'))?.ok).toBe(true)
})

test('what a killed pen left unfinished is removed by the next save', async () => {
  const left = join(cacheDir, 'vm-snapshots/.new-999999999')
  mkdirSync(left, { recursive: true })
  await saved('next')
  expect(dirs().filter(name => name.startsWith('.'))).toEqual([])
})
