import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import {
  closeSync,
  constants,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { errnoOf } from '../error.ts'
import { findBeneath, isAt, openBeneath, openCanonical, walkBeneath } from './open-beneath.ts'

let base: string
let root: number

beforeAll(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-beneath-')))
  mkdirSync(join(base, 'root/a/b'), { recursive: true })
  writeFileSync(join(base, 'root/a/b/file'), 'x')
  writeFileSync(join(base, 'outside'), 'secret')
  symlinkSync('../outside', join(base, 'root/out'))
  symlinkSync('a', join(base, 'root/within'))
  symlinkSync('/', join(base, 'root/top'))
  symlinkSync('/proc/self/cwd', join(base, 'root/magic'))
  root = openSync(join(base, 'root'), constants.O_RDONLY | constants.O_DIRECTORY)
})

afterAll(() => {
  closeSync(root)
  rmSync(base, { recursive: true, force: true })
})

/** What the descriptor is, or why there is none. */
function outcome(open: () => number): string {
  let fd: number
  try {
    fd = open()
  } catch (error) {
    return errnoOf(error) ?? String(error)
  }
  const stats = fstatSync(fd)
  closeSync(fd)
  return stats.isSymbolicLink() ? 'link' : stats.isDirectory() ? 'directory' : 'file'
}

describe.each([
  ['one call of the kernel', openBeneath],
  ['a walk, component by component', walkBeneath],
])('%s', (_, open) => {
  test.each([
    ['a/b/file', 'file'],
    ['a/b', 'directory'],
    ['', 'directory'],
    ['absent', 'ENOENT'],
    ['a/b/file/x', 'ENOTDIR'],
    ['within/b/file', 'ELOOP'],
    ['top/etc/passwd', 'ELOOP'],
    ['magic/x', 'ELOOP'],
    ['out', 'link'],
    ['a/../../outside', 'EXDEV'],
  ])('%s is %s', (path, expected) => {
    expect(outcome(() => open(root, path.split('/').filter(Boolean)))).toBe(expected)
  })

  test('no other mount is entered, and the mount itself can be a root', () => {
    const proc = statSync('/proc').dev !== statSync('/').dev
    const top = openSync('/', constants.O_RDONLY | constants.O_DIRECTORY)
    expect(outcome(() => open(top, ['proc', 'version']))).toBe(proc ? 'EXDEV' : 'file')
    closeSync(top)
    const across = openSync('/', constants.O_RDONLY | constants.O_DIRECTORY)
    expect(outcome(() => open(across, ['proc', 'version'], 'any'))).toBe('file')
    closeSync(across)
    const inside = openSync('/proc', constants.O_RDONLY | constants.O_DIRECTORY)
    expect(outcome(() => open(inside, ['version']))).toBe('file')
    closeSync(inside)
  })
})

test('a path that cannot be opened is absent; an error of the action is not', () => {
  expect(findBeneath(root, 'a/b/file', ({ kind, mountPoint }) => [kind, mountPoint])).toEqual(['file', false])
  expect(findBeneath(root, 'within/b', () => true)).toBeUndefined()
  expect(findBeneath(root, 'absent', () => true)).toBeUndefined()
  expect(() =>
    findBeneath(root, 'a', () => {
      throw Object.assign(new Error('mount'), { code: 'EPERM' })
    }),
  ).toThrow('mount')
})

test('a directory is found by its canonical path alone', () => {
  const fd = openCanonical(join(base, 'root/a'))
  expect(isAt(fd, statSync(join(base, 'root/a'), { bigint: true }))).toBe(true)
  expect(isAt(fd, statSync(join(base, 'root'), { bigint: true }))).toBe(false)
  closeSync(fd)
  expect(outcome(() => openCanonical(join(base, 'root/within')))).toBe('ELOOP')
  expect(outcome(() => openCanonical(join(base, 'root/within/b')))).toBe('ELOOP')
  expect(outcome(() => openCanonical(join(base, 'outside')))).toBe('ENOTDIR')
})
