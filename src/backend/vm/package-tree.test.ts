import { describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { takeKernel, takeServer } from './package-tree.ts'

/** A static program, as far as pen looks: no program header names a loader. */
const STATIC = Buffer.concat([Buffer.from('\x7fELF', 'latin1'), Buffer.alloc(124)])
const DYNAMIC = readFileSync('/proc/self/exe').subarray(0, 4096)
const needs = (...names: string[]): Buffer => Buffer.from(`module\0depends=${names.join(',')}\0`)

const virtio = needs('virtio')
const compressed = {
  '': (bytes: Buffer) => bytes,
  '.gz': (bytes: Buffer) => Bun.gzipSync(new Uint8Array(bytes)),
  '.zst': (bytes: Buffer) => Bun.zstdCompressSync(bytes),
  '.xz': (bytes: Buffer) => Bun.spawnSync(['xz', '--stdout'], { stdin: bytes }).stdout,
}

async function inTree(
  files: Readonly<Record<string, Uint8Array>>,
  body: (tree: string, made: string) => Promise<void>,
): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), 'pen-tree-'))
  const [tree, made] = [join(root, 'tree'), join(root, 'made')]
  try {
    mkdirSync(tree)
    mkdirSync(made)
    for (const [name, bytes] of Object.entries(files)) {
      mkdirSync(dirname(join(tree, name)), { recursive: true })
      writeFileSync(join(tree, name), bytes)
    }
    await body(tree, made)
  } finally {
    rmSync(root, { recursive: true })
  }
}

/** The kernel, the modules, how they are packed, and BusyBox, as the packages of each distribution have them. */
const LAYOUTS = {
  Debian: ['boot/vmlinuz-6.1-cloud', 'lib/modules/6.1-cloud', '', 'bin/busybox'],
  Fedora: ['lib/modules/6.1.fc42/vmlinuz', 'lib/modules/6.1.fc42', '.xz', 'usr/sbin/busybox'],
  Arch: ['usr/lib/modules/6.1-arch1/vmlinuz', 'usr/lib/modules/6.1-arch1', '.zst', 'usr/bin/busybox'],
  Alpine: ['boot/vmlinuz-virt', 'lib/modules/6.1-virt', '.gz', 'bin/busybox.static'],
} as const

describe('a directory with the packages of', () => {
  for (const [name, [kernel, modules, packing, busybox]] of Object.entries(LAYOUTS))
    test(`${name} gives kernel, BusyBox and modules, each after those that it needs`, async () => {
      const pack = compressed[packing]
      const files = {
        [kernel]: Buffer.from('kernel'),
        [busybox]: STATIC,
        [`${modules}/kernel/drivers/virtio/virtio_pci.ko${packing}`]: pack(virtio),
        [`${modules}/kernel/drivers/virtio/virtio.ko${packing}`]: pack(needs()),
        [`${modules}/kernel/drivers/char/virtio-rng.ko${packing}`]: pack(virtio),
        [`${modules}/kernel/fs/other.ko${packing}`]: pack(needs()),
      }
      await inTree(files, async (tree, made) => {
        await takeKernel(tree, made)
        expect(readdirSync(made).sort()).toEqual([
          '00-virtio.ko',
          '01-virtio_pci.ko',
          '02-virtio-rng.ko',
          'busybox',
          'vmlinuz',
        ])
        expect(readFileSync(join(made, '01-virtio_pci.ko')).equals(virtio)).toBe(true)
      })
    })
})

test('a directory without a kernel, with a dynamic BusyBox or without virtiofsd is refused as such', async () => {
  await inTree({ 'bin/busybox': STATIC }, async (tree, made) => {
    await expect(takeKernel(tree, made)).rejects.toThrow('pen could not find a kernel')
    expect(await takeServer(tree, made)).toBeUndefined()
  })
  await inTree({ 'boot/vmlinuz-6': STATIC, 'bin/busybox': DYNAMIC }, async (tree, made) => {
    await expect(takeKernel(tree, made)).rejects.toThrow('pen could not find a static BusyBox')
    expect(readdirSync(made)).toEqual([])
  })
})
