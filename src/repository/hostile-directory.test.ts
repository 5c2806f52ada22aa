import { afterEach, beforeEach, expect, test } from 'bun:test'
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { alternates } from '../survey/git/alternates.ts'
import { makeOwnDirectory } from './copy/make-own-directory.ts'

let top = ''
beforeEach(() => {
  top = mkdtempSync(`${tmpdir()}/own-`)
  for (const dir of ['git/objects/info', 'git/refs/heads', 'secret/.aws'])
    mkdirSync(`${top}/${dir}`, { recursive: true })
  writeFileSync(`${top}/git/HEAD`, 'ref: refs/heads/main\n')
  writeFileSync(`${top}/secret/.aws/config`, 'secret')
})
afterEach(() => rmSync(top, { recursive: true }))

const git = () => ({
  path: `${top}/git`,
  lentAt: '/run/pen-git/0',
  alternates: [],
  hasLfs: false,
  submodules: [],
})
const make = () => makeOwnDirectory(git(), `${top}/own`, `${top}/synced`)

test('a link in the place of worktrees or packed-refs brings no file from elsewhere', () => {
  symlinkSync(`${top}/secret`, `${top}/git/worktrees`)
  symlinkSync(`${top}/secret/.aws/config`, `${top}/git/packed-refs`)
  make()
  expect(existsSync(`${top}/own/worktrees`)).toBe(false)
  expect(readFileSync(`${top}/own/packed-refs`, 'utf8')).toBe('')
})

test('a pipe in the place of packed-refs does not block', () => {
  execFileSync('mkfifo', [`${top}/git/packed-refs`])
  make()
  expect(readFileSync(`${top}/own/packed-refs`, 'utf8')).toBe('')
})

test('only the objects of a repository are borrowed', () => {
  for (const dir of ['other/objects', 'other/refs']) mkdirSync(`${top}/${dir}`, { recursive: true })
  writeFileSync(`${top}/other/HEAD`, 'ref: refs/heads/main\n')
  writeFileSync(`${top}/git/objects/info/alternates`, `${top}/secret\n${top}/other/objects\n`)
  expect(alternates(`${top}/git`, '/run/pen-git/0/objects').map(({ from }) => from)).toEqual([
    `${top}/other/objects`,
  ])
})
