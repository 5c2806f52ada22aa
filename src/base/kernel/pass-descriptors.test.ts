import { afterAll, describe, expect } from 'bun:test'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onlyWhen } from '../../../test/skip.ts'
import {
  connectForDescriptors,
  descriptorPair,
  listenForDescriptors,
  MOST_DESCRIPTORS,
  receiveDescriptors,
  sendDescriptors,
} from './pass-descriptors.ts'

const linux = process.platform === 'linux'
const onLinux = onlyWhen(linux)
const [here, there] = linux ? descriptorPair() : [-1, -1]
afterAll(() => {
  if (linux) for (const fd of [here, there]) closeSync(fd)
})

const nulls = (count: number) => Array.from({ length: count }, () => openSync('/dev/null', 'r'))

describe('descriptors that are handed over', () => {
  onLinux('arrive in their order, as descriptors of the same files, with their text', () => {
    const sent = [openSync('/dev/null', 'r'), openSync('/dev/zero', 'r')]
    sendDescriptors(there, { text: 'two', descriptors: sent })
    for (const fd of sent) closeSync(fd)
    const got = receiveDescriptors(here)
    expect(got?.text).toBe('two')
    expect(got?.descriptors.map(fd => readlinkSync(`/proc/self/fd/${fd}`))).toEqual([
      '/dev/null',
      '/dev/zero',
    ])
    for (const fd of got?.descriptors ?? []) closeSync(fd)
  })

  onLinux('are not inherited by the next program that is started', () => {
    const sent = nulls(1)
    sendDescriptors(there, { text: 'x', descriptors: sent })
    const [fd = -1] = receiveDescriptors(here)?.descriptors ?? []
    const flags = /flags:\s*(\d+)/.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'utf8'))?.[1] ?? '0'
    expect(Number.parseInt(flags, 8) & 0o2000000).toBe(0o2000000)
    for (const one of [...sent, fd]) closeSync(one)
  })

  onLinux('as many as one message may have all arrive', () => {
    const sent = nulls(MOST_DESCRIPTORS)
    sendDescriptors(there, { text: 'many', descriptors: sent })
    const got = receiveDescriptors(here)?.descriptors ?? []
    expect(got.length).toBe(MOST_DESCRIPTORS)
    for (const fd of [...sent, ...got]) closeSync(fd)
  })

  onLinux('one too many is no delivery at all, and none of them stays open', () => {
    const sent = nulls(MOST_DESCRIPTORS + 4)
    const next = openSync('/dev/null', 'r')
    closeSync(next)
    sendDescriptors(there, { text: 'too many', descriptors: sent })
    expect(receiveDescriptors(here)).toBeUndefined()
    const again = openSync('/dev/null', 'r')
    expect(again).toBe(next)
    for (const fd of [...sent, again]) closeSync(fd)
  })

  onLinux('when nothing was sent there is nothing, without waiting', () => {
    expect(receiveDescriptors(here)).toBeUndefined()
  })
})

onLinux('a client passes descriptors over a path of any length', () => {
  const top = mkdtempSync(join(tmpdir(), 'pen-descriptors-'))
  const dir = mkdtempSync(join(top, `${'long-'.repeat(30)}`))
  const listener = listenForDescriptors(join(dir, 'place'))
  expect(listener.accept()).toBeUndefined()
  const directory = openSync(dir, 'r')
  const over = connectForDescriptors(`/proc/self/fd/${directory}/place`)
  sendDescriptors(over, { text: 'here', descriptors: [directory] })
  const accepted = listener.accept() ?? -1
  const got = receiveDescriptors(accepted)
  expect([got?.text, readlinkSync(`/proc/self/fd/${got?.descriptors[0]}`)]).toEqual(['here', dir])
  for (const fd of [over, accepted, directory, ...(got?.descriptors ?? [])]) closeSync(fd)
  listener.close()
  expect(existsSync(join(dir, 'place'))).toBe(false)
  rmSync(top, { recursive: true })
})

onLinux('a path without a listener is an error, and so is a name that the kernel would cut', () => {
  expect(() => connectForDescriptors('/nonexistent/place')).toThrow('ENOENT')
  expect(() => connectForDescriptors(`/${'x'.repeat(107)}`)).toThrow('too long')
})
