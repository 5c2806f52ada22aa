import { afterAll, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildDisk, daemonDisk } from './daemon-disk.ts'

const dir = mkdtempSync(join(tmpdir(), 'pen-disk-'))
const cache = mkdtempSync(join(tmpdir(), 'pen-disk-cache-'))
afterAll(() => {
  for (const each of [dir, cache]) rmSync(each, { recursive: true, force: true })
})

const BLOCK = 4096

/** Reads the image as the kernel does: superblock, root inode, directory, inodes. */
function filesOf(disk: Buffer): Map<string, { mode: string; text: string }> {
  expect(disk.readUInt32LE(1024)).toBe(0xe0f5e1e2)
  const inodes = disk.readUInt32LE(1024 + 40) * BLOCK
  const read = (number: number): { mode: string; bytes: Buffer } => {
    const at = inodes + number * 32
    const start = disk.readUInt32LE(at + 16) * BLOCK
    return {
      mode: disk.readUInt16LE(at + 4).toString(8),
      bytes: disk.subarray(start, start + disk.readUInt32LE(at + 8)),
    }
  }
  const root = read(disk.readUInt16LE(1024 + 14)).bytes
  const count = root.readUInt16LE(8) / 12
  return new Map(
    Array.from({ length: count }, (_, i) => {
      const end = i + 1 < count ? root.readUInt16LE((i + 1) * 12 + 8) : root.length
      const name = root.subarray(root.readUInt16LE(i * 12 + 8), end).toString()
      const { mode, bytes } = read(Number(root.readBigUInt64LE(i * 12)))
      return [name, { mode, text: mode.startsWith('4') ? '' : bytes.toString() }] as const
    }),
  )
}

test('a disk has every file with its bytes, in the order of names that the kernel expects', () => {
  const long = 'x'.repeat(3 * BLOCK + 5)
  const files = { pen: long, loader: 'loader', 'libc.so.6': 'c', 'libm.so.6': '' }
  const disk = buildDisk(Object.entries(files).map(([name, text]) => ({ name, bytes: Buffer.from(text) })))
  expect(disk.length % BLOCK).toBe(0)
  const found = filesOf(Buffer.from(disk))
  expect([...found.keys()]).toEqual(['.', '..', 'libc.so.6', 'libm.so.6', 'loader', 'pen'])
  for (const [name, text] of Object.entries(files)) expect(found.get(name)).toEqual({ mode: '100555', text })
})

test('a disk is made once, and only the newest two stay', async () => {
  for (const [i, name] of ['daemon-old', 'daemon-older', '.daemon-killed.tmp'].entries()) {
    writeFileSync(join(dir, name), 'x')
    utimesSync(join(dir, name), 1000 - i, 1000 - i)
  }
  const name = await daemonDisk(dir, cache)
  expect(readdirSync(dir).sort()).toEqual([name, 'daemon-old'].sort())
  expect(await daemonDisk(dir, cache)).toBe(name)
})
