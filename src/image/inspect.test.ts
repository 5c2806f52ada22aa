import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Engine } from '../backend/container/engine/engine.ts'
import { filesOf, findImage, textFiles } from './inspect.ts'

const ID = 'a'.repeat(64)
const BUSY = 'Error: inspecting object: layer not known'

describe('an image is looked for', () => {
  let dir = ''
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'pen-inspect-'))
  })
  afterAll(() => rmSync(dir, { recursive: true, force: true }))

  /** An engine that says `failure` so many times before it answers, and counts how often it was asked. */
  function engineOf(times: number, failure: string, name: Engine['name'] = 'podman') {
    const asked = join(dir, crypto.randomUUID())
    const script = `echo >> ${asked}
[ "$(wc -l < ${asked})" -gt ${times} ] && echo ${ID} && exit
echo '${failure}' >&2; exit 125`
    const flags = ['-c', script]
    const engine: Engine = {
      name,
      daemon: name === 'docker',
      program: '/bin/sh',
      flags,
      localPrefix: '',
      certificates: '',
      env: { PATH: '/usr/bin:/bin' },
    }
    return { engine, tries: () => (existsSync(asked) ? readFileSync(asked, 'utf8').length : 0) }
  }

  test('and an engine that fails for a moment is asked again', async () => {
    const { engine, tries } = engineOf(2, BUSY)
    expect([await findImage(engine, 'x'), tries()]).toEqual([ID, 3])
  })

  test.each([
    ['podman', 'Error: inspecting object: localhost/x: image not known'],
    ['docker', 'Error: No such image: x'],
    ['docker', 'Error response from daemon: No such image: x:latest'],
  ] as const)('and %s is believed at once that it has none: %s', async (name, failure) => {
    const { engine, tries } = engineOf(9, failure, name)
    expect([await findImage(engine, 'x'), tries()]).toEqual([undefined, 1])
  })

  test('and an engine that goes on failing is quoted: of the image nothing is known', async () => {
    const { engine, tries } = engineOf(99, BUSY)
    const quoted = 'podman failed: inspecting object: layer not known'
    await expect(findImage(engine, 'x')).rejects.toThrow(quoted)
    expect(tries()).toBe(5)
  })

  test('and what is no id is not taken for one', async () => {
    const engine: Engine = {
      name: 'podman',
      daemon: false,
      program: '/bin/echo',
      flags: [],
      localPrefix: '',
      certificates: '',
      env: {},
    }
    await expect(findImage(engine, 'x')).rejects.toThrow('podman failed')
  })
})

describe('files of an image are read in full', () => {
  /** An engine whose `cp` does this; every other order works. */
  const engineWith = (cp: string): Engine => ({
    name: 'docker',
    daemon: true,
    program: '/bin/sh',
    flags: ['-c', `case $1 in cp) ${cp};; create) echo ${ID};; esac`, 'sh'],
    localPrefix: '',
    certificates: '',
    env: { PATH: '/usr/bin:/bin' },
  })
  const read = (cp: string) => filesOf(engineWith(cp), ID, ['/etc/passwd'])

  test('or the start is refused, with the path', async () => {
    await expect(read('head -c 9000000 /dev/zero')).rejects.toThrow('/etc/passwd of the image has more than')
    await expect(read('echo "storage is busy" >&2; exit 125')).rejects.toThrow(
      'docker failed: storage is busy',
    )
  })

  test.each([
    'Error response from daemon: Could not find the file /etc/passwd in container x',
    'Error: "/etc/passwd" could not be found on container x: no such file or directory',
  ])('and one that is not there is none: %s', async said => {
    expect(await read(`echo "${said}" >&2; exit 1`)).toEqual([])
  })
})

function entry(name: string, kind: string, text: string, size = Buffer.byteLength(text)): Buffer {
  const head = Buffer.alloc(512)
  head.write(name, 0, 'latin1')
  head.write(`${size.toString(8).padStart(11, '0')}\0`, 124, 'latin1')
  head.write(kind, 156, 'latin1')
  const body = Buffer.from(text)
  return Buffer.concat([head, body, Buffer.alloc((512 - (body.length % 512)) % 512)])
}
const END = Buffer.alloc(1024)

describe('the archive of an engine', () => {
  test('gives its plain files, behind extended headers and directories', () => {
    const archive = [
      entry('x', 'x', '27 mtime=1.1\n'),
      entry('apt/', '5', ''),
      entry('apt/a.list', '0', 'deb a\n'),
      entry('b', '\0', 'ü'.repeat(300)),
    ]
    expect(textFiles(Buffer.concat([...archive, END]))).toEqual([
      { name: 'apt/a.list', text: 'deb a\n' },
      { name: 'b', text: 'ü'.repeat(300) },
    ])
  })

  test('gives all of them, however many', () => {
    const many = Array.from({ length: 300 }, (_, i) => entry(`${i}`, '0', `${i}`))
    expect(textFiles(Buffer.concat([...many, END]))).toHaveLength(300)
  })

  test('gives no link, no device and nothing that is not text', () => {
    const archive = [
      entry('passwd', '2', ''),
      entry('dev', '3', ''),
      entry('binary', '0', 'a\0b'),
      entry('broken', '0', 'a\ufffdb'),
    ]
    expect(textFiles(Buffer.concat([...archive, END]))).toEqual([])
  })

  test('with a wrong size is read up to that entry', () => {
    const good = entry('a', '0', 'a')
    expect(textFiles(Buffer.concat([good, entry('b', '0', 'b', 1e9), END]))).toEqual([
      { name: 'a', text: 'a' },
    ])
    const negative = entry('b', '0', 'b')
    negative.write('-0000000001', 124, 'latin1')
    expect(textFiles(Buffer.concat([good, negative, END]))).toEqual([{ name: 'a', text: 'a' }])
    expect(textFiles(Buffer.from('short'))).toEqual([])
  })
})
