import { afterAll, describe, expect } from 'bun:test'
import { closeSync, openSync, readFileSync, readlinkSync } from 'node:fs'
import { onlyWhen } from '../../../test/skip.ts'
import { descriptorPair, MOST_DESCRIPTORS, receiveDescriptors, sendDescriptors } from './pass-descriptors.ts'

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
