import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DirectoryWatch } from './directory-watch.ts'

let base = ''
let seen: string[] = []
let doubts = 0
let watch: DirectoryWatch

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-watch-')))
  for (const dir of ['a', 'b']) mkdirSync(`${base}/${dir}`)
  seen = []
  doubts = 0
  watch = new DirectoryWatch({
    appeared: (dir, name) => seen.push(`${dir.slice(base.length + 1)}:${name}`),
    doubt: () => doubts++,
    lost: () => undefined,
  })
})
afterEach(async () => {
  await watch.close()
  rmSync(base, { recursive: true, force: true })
})

test('names that are made or moved into a directory are reported, with the directory', async () => {
  watch.set([`${base}/a`, `${base}/b`])
  writeFileSync(`${base}/a/one`, '')
  renameSync(`${base}/a/one`, `${base}/b/two`)
  mkdirSync(`${base}/b/three é`)
  await Bun.sleep(50)
  expect(seen).toEqual(['a:one', 'b:two', 'b:three é'])
})

test('writing to a file is not reported', async () => {
  writeFileSync(`${base}/a/log`, '')
  watch.set([`${base}/a`])
  for (let i = 0; i < 100; i++) appendFileSync(`${base}/a/log`, 'line\n')
  await Bun.sleep(50)
  expect(seen).toEqual([])
})

test('a replaced directory is watched again when it is set again, and its loss is reported', async () => {
  watch.set([`${base}/a`])
  renameSync(`${base}/a`, `${base}/old`)
  mkdirSync(`${base}/a`)
  await Bun.sleep(50)
  expect(doubts).toBeGreaterThan(0)
  watch.set([`${base}/a`])
  writeFileSync(`${base}/a/new`, '')
  writeFileSync(`${base}/old/else`, '')
  await Bun.sleep(50)
  expect(seen).toEqual(['a:new'])
})

test('what appeared in a directory before it was moved is reported, also when it is not watched any more', async () => {
  watch.set([`${base}/a`])
  writeFileSync(`${base}/a/new`, '')
  renameSync(`${base}/a`, `${base}/old`)
  watch.set([`${base}/a`])
  await Bun.sleep(50)
  expect([seen, doubts > 0]).toEqual([['a:new'], true])
})

test('an absent directory is skipped', async () => {
  watch.set([`${base}/none`, `${base}/a`])
  writeFileSync(`${base}/a/x`, '')
  await Bun.sleep(50)
  expect(seen).toEqual(['a:x'])
})

test('after closing nothing is reported', async () => {
  watch.set([`${base}/a`])
  await watch.close()
  writeFileSync(`${base}/a/x`, '')
  await Bun.sleep(50)
  expect(seen).toEqual([])
})
