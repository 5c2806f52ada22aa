import { afterAll, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onlyWhen } from '../../test/skip.ts'
import { PenError } from './error.ts'
import { type ReadLimits, readRegularFile } from './regular-file.ts'
import { capture } from './spawn.ts'

const root = mkdtempSync(join(tmpdir(), 'pen-regular-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))
const at = (name: string): string => join(root, name)
const isRoot = process.getuid?.() === 0

function refused(path: string, limits: ReadLimits = { maxBytes: 100 }): PenError {
  try {
    readRegularFile(path, limits)
  } catch (error) {
    if (error instanceof PenError && error.code === 'CONFIG_FILE' && error.hint) return error
    throw error
  }
  throw new Error('expected a refusal')
}

describe('readRegularFile', () => {
  test('returns the bytes of a regular file, and undefined where there is none', () => {
    writeFileSync(at('plain'), new Uint8Array([0, 1, 255]))
    expect([...(readRegularFile(at('plain'), { maxBytes: 3 }) ?? [])]).toEqual([0, 1, 255])
    expect(readRegularFile(at('absent'), { maxBytes: 3 })).toBeUndefined()
    writeFileSync(at('empty'), '')
    expect(readRegularFile(at('empty'), { maxBytes: 0 })?.length).toBe(0)
  })

  test('a file of exactly the limit is read, one byte more is refused', () => {
    writeFileSync(at('full'), 'x'.repeat(200_000))
    expect(readRegularFile(at('full'), { maxBytes: 200_000 })?.length).toBe(200_000)
    expect(refused(at('full'), { maxBytes: 199_999 }).message).toEndWith('is larger than 199999 bytes')
  })

  test('a terabyte of holes is refused without being read', () => {
    writeFileSync(at('sparse'), '')
    truncateSync(at('sparse'), 2 ** 40)
    expect(refused(at('sparse')).message).toContain('larger')
  })

  test('a link is refused, also to a good file and to nothing', () => {
    writeFileSync(at('target'), '{}')
    symlinkSync(at('target'), at('link'))
    symlinkSync(at('nowhere'), at('dangling'))
    expect(refused(at('link')).message).toEndWith('is a symbolic link')
    expect(refused(at('dangling')).message).toEndWith('is a symbolic link')
  })

  test('a pipe without a writer is refused at once', async () => {
    await capture(['/usr/bin/mkfifo', at('pipe')], { env: {}, timeoutMs: 5000 })
    expect(refused(at('pipe')).message).toEndWith('is a pipe, not a regular file')
  })

  test('a directory, a device and a socket are refused', async () => {
    mkdirSync(at('dir'))
    expect(refused(at('dir')).message).toContain('a directory')
    expect(refused('/dev/zero').message).toContain('a device')
    const server = createServer().listen(at('socket'))
    await new Promise(resolve => server.once('listening', resolve))
    expect(refused(at('socket')).message).toContain('not a regular file')
    server.close()
  })

  test('a file whose size lies is still bounded', () => {
    expect(refused('/proc/kallsyms').message).toContain('larger than 100 bytes')
  })

  test('odd paths are refused cleanly', () => {
    writeFileSync(at('file'), '')
    refused(`${at('file')}/below`)
    refused(`${at('file')}\0`)
    refused(at('n'.repeat(300)))
  })

  onlyWhen(!isRoot)('a file that may not be read names the fix (root may read all)', () => {
    writeFileSync(at('secret'), '', { mode: 0 })
    expect(refused(at('secret')).hint).toContain('chmod u+r')
  })
})

describe('a file that may grant', () => {
  const limits = { maxBytes: 100, owner: 'self-or-root' } as const

  test('is read when it is the user’s own or root’s', () => {
    writeFileSync(at('own'), '{}', { mode: 0o600 })
    expect(readRegularFile(at('own'), limits)?.toString()).toBe('{}')
    expect(readRegularFile('/etc/hostname', limits)).toBeDefined()
  })

  test('is refused when every user may write it, and only then', () => {
    writeFileSync(at('open'), '{}')
    chmodSync(at('open'), 0o666)
    expect(refused(at('open'), limits).hint).toContain('chmod o-w')
    expect(readRegularFile(at('open'), { maxBytes: 100 })).toBeDefined()
    chmodSync(at('open'), 0o664)
    expect(readRegularFile(at('open'), limits)).toBeDefined()
  })

  onlyWhen(isRoot)('is refused when it is another user’s (only root can give a file away)', () => {
    writeFileSync(at('foreign'), '{}')
    chownSync(at('foreign'), 12_345, 12_345)
    expect(refused(at('foreign'), limits).message).toEndWith('belongs to user 12345')
    expect(readRegularFile(at('foreign'), { maxBytes: 100 })).toBeDefined()
  })
})
