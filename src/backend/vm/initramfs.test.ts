import { expect, test } from 'bun:test'
import { buildInitramfs, neededModules } from './initramfs.ts'

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

test('a module names the modules that it needs', () => {
  expect(neededModules(bytes('\0license=GPL\0depends=virtio,virtio_ring\0name=x\0'))).toEqual([
    'virtio',
    'virtio_ring',
  ])
  expect(neededModules(bytes('\0depends=\0'))).toEqual([])
  expect(neededModules(bytes('no module'))).toEqual([])
})

test('the initramfs is a cpio archive with the script, BusyBox and the modules in their order', () => {
  const archive = buildInitramfs({
    busybox: bytes('busybox!'),
    modules: [
      { name: 'virtio.ko', bytes: bytes('one') },
      { name: 'fuse.ko', bytes: bytes('three') },
    ],
  })
  const entries = entriesOf(archive)
  const files = [...entries.keys()].filter(name => name.includes('/') || name === 'init')
  expect(files).toEqual(['bin/busybox', 'init', 'modules/00-virtio.ko', 'modules/01-fuse.ko'])
  expect(entries.get('modules/01-fuse.ko')).toBe('three')
  expect(entries.get('init')).toStartWith('#!/bin/busybox sh\n')
  expect([...entries.keys()].at(-1)).toBe('TRAILER!!!')
})

/** Reads the archive as the kernel does: a header of 110 characters, the name, the contents, each padded to four. */
function entriesOf(archive: Uint8Array): Map<string, string> {
  const text = Buffer.from(archive).toString('latin1')
  const entries = new Map<string, string>()
  const padded = (at: number): number => (at + 3) & ~3
  for (let at = 0; at < text.length; ) {
    expect(text.slice(at, at + 6)).toBe('070701')
    const field = (index: number): number =>
      Number.parseInt(text.slice(at + 6 + index * 8, at + 14 + index * 8), 16)
    const [size, length] = [field(6), field(11)]
    const name = text.slice(at + 110, at + 110 + length - 1)
    const contents = padded(at + 110 + length)
    entries.set(name, text.slice(contents, contents + size))
    at = padded(contents + size)
  }
  return entries
}
