import { afterAll, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onlyWhen, skipUnless } from '../../test/skip.ts'
import { writeFileAtomically } from './atomic-file.ts'
import { PenError } from './error.ts'
import { capture } from './spawn.ts'

const root = mkdtempSync(join(tmpdir(), 'pen-atomic-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

let directory = ''
let file = ''
let n = 0
beforeEach(() => {
  directory = join(root, `${n++}`)
  mkdirSync(directory)
  file = join(directory, 'config.json')
})

function refused(fn: () => void): PenError {
  try {
    fn()
  } catch (error) {
    if (error instanceof PenError) return error
    throw error
  }
  throw new Error('expected a refusal')
}

const unshare = ['/usr/bin/unshare', '-Urm']
const canMount = await capture([...unshare, 'true'], { env: {}, timeoutMs: 5000 }).then(
  ({ code }) => code === 0,
  () => false,
)

/** Writes 64,000 bytes in a process of its own, in a shell prepared by `setup`, and tells how it went. */
async function writeIn(
  path: string,
  setup: string,
  after = '',
  wrapper: readonly string[] = [],
): Promise<string> {
  const script = `
    const { writeFileAtomically } = await import(${JSON.stringify(join(import.meta.dir, 'atomic-file.ts'))})
    try { writeFileAtomically(${JSON.stringify(path)}, 'x'.repeat(64_000)); console.log('written') }
    catch (error) { console.log(error.code, error.message.replace(/.*\\(/, '('), error.hint) }`
  const shell = ['/bin/sh', '-c', `${setup} && "$0" -e "$1"${after}`, process.execPath, script]
  const env = { HOME: root, PATH: '/usr/sbin:/usr/bin:/sbin:/bin', BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0' }
  return (await capture([...wrapper, ...shell], { env, timeoutMs: 10_000 })).stdout
}

describe('writeFileAtomically', () => {
  test('makes the file with the given mode and leaves nothing beside it', () => {
    const before = process.umask(0o077)
    try {
      writeFileAtomically(file, 'new')
      writeFileAtomically(join(directory, 'shared'), new Uint8Array([0, 255]), { mode: 0o644 })
    } finally {
      process.umask(before)
    }
    expect(readFileSync(file, 'utf8')).toBe('new')
    expect(statSync(file).mode & 0o7777).toBe(0o600)
    expect(statSync(join(directory, 'shared')).mode & 0o7777).toBe(0o644)
    expect([...readFileSync(join(directory, 'shared'))]).toEqual([0, 255])
    expect(readdirSync(directory).sort()).toEqual(['config.json', 'shared'])
  })

  test('replaces a file whole, also a large one by an empty one', () => {
    writeFileAtomically(file, 'x'.repeat(3_000_000))
    expect(statSync(file).size).toBe(3_000_000)
    writeFileAtomically(file, '')
    expect(statSync(file).size).toBe(0)
  })

  test('a link in the place of the file is replaced and what it points to is untouched', () => {
    const victim = join(directory, 'victim')
    writeFileSync(victim, 'mine')
    symlinkSync(victim, file)
    writeFileAtomically(file, 'new')
    expect(readFileSync(victim, 'utf8')).toBe('mine')
    expect(lstatSync(file).isFile()).toBe(true)
  })

  test('a directory in the place of the file is refused and stays', () => {
    mkdirSync(file)
    const error = refused(() => writeFileAtomically(file, 'new'))
    expect(error.code).toBe('STATE')
    expect(error.hint).toContain('move it away')
    expect(readdirSync(directory)).toEqual(['config.json'])
  })

  test('a missing directory is refused with its fix', () => {
    expect(refused(() => writeFileAtomically(join(directory, 'no', 'x'), '')).hint).toBe(
      'create the directory first',
    )
  })

  test('a name at the limit of the file system still fits its temporary file', () => {
    const long = join(directory, 'n'.repeat(255))
    writeFileAtomically(long, 'new')
    expect(existsSync(long)).toBe(true)
  })

  onlyWhen(process.getuid?.() !== 0)(
    'a directory that may not be written is refused (as root nothing is unwritable)',
    () => {
      writeFileSync(file, 'old')
      chmodSync(directory, 0o500)
      expect(refused(() => writeFileAtomically(file, 'new')).hint).toBe('make the directory writable for you')
      chmodSync(directory, 0o700)
      expect(readFileSync(file, 'utf8')).toBe('old')
    },
  )

  test('a write that stops halfway leaves the old file and no temporary one', async () => {
    writeFileSync(file, 'old')
    const limited = await writeIn(file, 'ulimit -f 8')
    expect(limited).toStartWith('STATE (EFBIG)')
    expect(limited).toContain('the file is as it was')
    expect(readFileSync(file, 'utf8')).toBe('old')
    expect(readdirSync(directory)).toEqual(['config.json'])

    expect(await writeIn(file, 'ulimit -f 1024')).toStartWith('written')
    expect(statSync(file).size).toBe(64_000)
  })

  skipUnless(canMount, 'no mount namespace can be made')(
    'a full and a read-only file system leave the old file (needs user namespaces)',
    async () => {
      const mount = (size: string): string =>
        `mount -t tmpfs -o size=${size} tmpfs ${directory} && printf old > ${file}`
      const after = `; cat ${file} | head -c 10; ls -A ${directory}`
      const full = await writeIn(file, mount('16k'), after, unshare)
      expect(full).toStartWith('STATE (ENOSPC)')
      expect(full).toEndWith('\noldconfig.json\n')
      const readOnly = await writeIn(
        file,
        `${mount('1m')} && mount -o remount,ro,bind ${directory}`,
        after,
        unshare,
      )
      expect(readOnly).toStartWith('STATE (EROFS)')
      expect(readOnly).toEndWith('\noldconfig.json\n')
      expect(await writeIn(file, mount('1m'), after, unshare)).toBe('written\nxxxxxxxxxxconfig.json\n')
    },
  )
})
