import { afterAll, beforeAll, expect, test } from 'bun:test'
import {
  chmodSync,
  closeSync,
  fstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { at, openDirectory, withSpot } from './beneath.ts'
import { removeTree } from './remove-tree.ts'

let base: string
let root: number

beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), 'pen-spot-'))
  mkdirSync(join(base, 'a/b'), { recursive: true })
  writeFileSync(join(base, 'a/b/file'), 'x')
  symlinkSync('b', join(base, 'a/link'))
  for (const name of ['a/b', 'a']) chmodSync(join(base, name), 0)
  root = openDirectory(base) ?? -1
})

afterAll(() => {
  closeSync(root)
  removeTree(base)
})

const depthOf = (path: string) => withSpot(root, path.split('/'), ({ depth }) => depth)

test('a walk goes through locked directories, and leaves them locked', () => {
  const read = withSpot(root, ['a', 'b', 'file'], ({ parent, name, fd, stats, depth }) => {
    expect(fstatSync(fd, { bigint: true }).ino).toBe(stats.ino)
    return [depth, readFileSync(at(parent, name), 'utf8')]
  })
  expect(read).toEqual([3, 'x'])
  expect(statSync(join(base, 'a')).mode & 0o777).toBe(0)
  chmodSync(join(base, 'a'), 0o700)
  expect(statSync(join(base, 'a/b')).mode & 0o777).toBe(0)
  chmodSync(join(base, 'a'), 0)
})

test.each([
  ['a/b', 2],
  ['a/link', 2],
  ['a/link/file', 2],
  ['a/absent', undefined],
  ['a/b/file/below', undefined],
] as const)(
  'the spot of %s has the depth %p: a link ends the walk, a file in the way is nothing',
  (path, depth) => {
    expect(depthOf(path)).toBe(depth)
  },
)

test('an error of the action is the caller’s, not an absent path', () => {
  const fail = () => {
    throw Object.assign(new Error('mine'), { code: 'ENOENT' })
  }
  expect(() => withSpot(root, ['a'], fail)).toThrow('mine')
})
