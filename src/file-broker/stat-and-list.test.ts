import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { O_PATH } from '../base/kernel/descriptor.ts'
import { directoryNames } from './stat-and-list.ts'

function inDirectory(work: (dir: string, names: () => ReturnType<typeof directoryNames>) => void): void {
  const dir = mkdtempSync(join(tmpdir(), 'pen-names-'))
  const fd = openSync(dir, O_PATH)
  try {
    work(dir, () => directoryNames(fd))
  } finally {
    closeSync(fd)
    rmSync(dir, { recursive: true })
  }
}

test('every name is listed with its kind; a non-UTF-8 name is undefined', () =>
  inDirectory((dir, names) => {
    mkdirSync(join(dir, 'directory'))
    writeFileSync(join(dir, 'file\ufffd'), '')
    symlinkSync('/', join(dir, 'link'))
    spawnSync('mkfifo', [join(dir, 'pipe')])
    spawnSync('sh', ['-c', 'printf "$1/no\\377text" "$1" | xargs -0 touch', 'sh', dir])
    const told = [...names()].map(({ name, kind }) => `${name ?? '-'} ${kind}`)
    expect(told.toSorted((a, b) => (a < b ? -1 : 1))).toEqual([
      '- file',
      'directory directory',
      'file\ufffd file',
      'link link',
      'pipe other',
    ])
  }))

test('names beyond one buffer are all listed, and an early stop leaves no descriptor open', () =>
  inDirectory((dir, names) => {
    for (let i = 0; i < 1500; i++) writeFileSync(join(dir, `a-name-of-some-length-${i}`), '')
    expect(new Set([...names()].map(({ name }) => name)).size).toBe(1500)
    const before = readdirSync('/proc/self/fd').length
    for (let i = 0; i < 20; i++) for (const { name } of names()) if (name !== undefined) break
    expect(readdirSync('/proc/self/fd').length).toBe(before)
  }))
