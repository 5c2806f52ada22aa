import { afterEach, beforeEach, expect, test } from 'bun:test'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { makeDirectoryBeneath } from './make-directories.ts'

let base = ''
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-make-')))
  mkdirSync(`${base}/ws`)
  mkdirSync(`${base}/outside`)
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

test('a directory is made with its parents; a second call makes nothing', () => {
  expect(makeDirectoryBeneath(`${base}/ws`, `${base}/ws/a/b`, undefined)).toEqual([
    `${base}/ws/a`,
    `${base}/ws/a/b`,
  ])
  expect(lstatSync(`${base}/ws/a/b`).isDirectory()).toBe(true)
  expect(makeDirectoryBeneath(`${base}/ws`, `${base}/ws/a/b`, undefined)).toEqual([])
})

test('no link is followed, on the way or at the end', () => {
  symlinkSync(`${base}/outside`, `${base}/ws/a`)
  expect(() => makeDirectoryBeneath(`${base}/ws`, `${base}/ws/a/b`, undefined)).toThrow('not a directory')
  expect(() => makeDirectoryBeneath(`${base}/ws`, `${base}/ws/a`, undefined)).toThrow('not a directory')
  expect(existsSync(`${base}/outside/b`)).toBe(false)
})
