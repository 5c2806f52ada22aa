import { expect } from 'bun:test'
import { closeSync, existsSync, mkdtempSync, openSync, readlinkSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onlyWhen } from '../../../test/skip.ts'
import { connectForDescriptors, listenForDescriptors } from './descriptor-socket.ts'
import { receiveDescriptors, sendDescriptors } from './pass-descriptors.ts'

const onLinux = onlyWhen(process.platform === 'linux')

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
