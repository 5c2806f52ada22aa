import { expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { removeMadePoints } from './made-mount-points.ts'

const top = (): string => realpathSync(mkdtempSync(join(tmpdir(), 'pen-points-')))

/** As bubblewrap makes a file. */
function empty(path: string, mode = 0o444): string {
  writeFileSync(path, '')
  chmodSync(path, mode)
  return path
}

const point = (path: string, ino = 1n) => ({ path, ino })

test('a mount point that bubblewrap made is removed, and one that stood there before stays', () => {
  const dir = top()
  const began = Date.now()
  const made = empty(join(dir, '.env'))
  const before = empty(join(dir, '.envrc'))
  mkdirSync(join(dir, '.vscode'), { mode: 0o755 })
  removeMadePoints(
    [point(made), point(before, lstatSync(before, { bigint: true }).ino), point(join(dir, '.vscode'))],
    began,
  )
  expect([existsSync(made), existsSync(before), existsSync(join(dir, '.vscode'))]).toEqual([
    false,
    true,
    false,
  ])
})

test('what the user put there meanwhile stays: with content, another mode, older, or through a link', () => {
  const dir = top()
  const began = Date.now()
  const full = join(dir, 'full')
  writeFileSync(full, 'KEY=1\n')
  chmodSync(full, 0o444)
  const plain = empty(join(dir, 'plain'), 0o644)
  mkdirSync(join(dir, 'used'))
  writeFileSync(join(dir, 'used/file'), '')
  const elsewhere = top()
  empty(join(elsewhere, 'file'))
  symlinkSync(elsewhere, join(dir, 'way'))
  symlinkSync(join(elsewhere, 'file'), join(dir, 'link'))
  const paths = [
    full,
    plain,
    join(dir, 'used'),
    join(dir, 'way/file'),
    join(dir, 'link'),
    join(dir, 'absent'),
  ]
  removeMadePoints(
    paths.map(path => point(path)),
    began,
  )
  removeMadePoints([point(empty(join(dir, 'older')))], Date.now() + 60_000)
  expect(paths.slice(0, 5).every(path => existsSync(path))).toBe(true)
  expect([existsSync(join(dir, 'older')), existsSync(join(elsewhere, 'file'))]).toEqual([true, true])
})
