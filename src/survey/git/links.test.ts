import { afterEach, beforeEach, expect, test } from 'bun:test'
import {
  closeSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { linksAtTop, type RemovedLink, removeLinks } from './links.ts'

let ws = ''
beforeEach(() => {
  ws = realpathSync(mkdtempSync(join(tmpdir(), 'pen-git-links-')))
})
afterEach(() => rmSync(ws, { recursive: true, force: true }))

function remove(extent: 'busy' | 'all', path = `${ws}/.git`, links: readonly string[] = []): string[] {
  const root = openSync(path.startsWith(`${ws}/`) ? ws : path, 'r')
  try {
    const removed: RemovedLink[] = []
    const tree = { path, root: path.startsWith(`${ws}/`) ? ws : path, links }
    for (const _ of removeLinks(root, tree, extent, removed));
    return removed
      .map(link => `${link.path.slice(ws.length + 1)} ${link.to}`)
      .sort((a, b) => (a < b ? -1 : 1))
  } finally {
    closeSync(root)
  }
}

test('during the run the top and the logs are checked; at the end everything but the objects', () => {
  for (const dir of ['logs/refs', 'modules/a/logs', 'objects/ab'])
    mkdirSync(`${ws}/.git/${dir}`, { recursive: true })
  for (const at of ['MERGE_MSG', 'logs/HEAD', 'logs/refs/x', 'modules/a/logs/HEAD', 'objects/ab/c'])
    symlinkSync('/etc/x', `${ws}/.git/${at}`)
  expect(remove('busy')).toEqual(['.git/MERGE_MSG /etc/x', '.git/logs/HEAD /etc/x'])
  expect(remove('all')).toEqual(['.git/logs/refs/x /etc/x', '.git/modules/a/logs/HEAD /etc/x'])
  expect(readdirSync(`${ws}/.git/objects/ab`)).toEqual(['c'])
})

test('a link among many refs is removed; one to another ref, or one from before, is kept', () => {
  mkdirSync(`${ws}/.git/refs/remotes/origin`, { recursive: true })
  for (let i = 0; i < 600; i++) mkdirSync(`${ws}/.git/refs/d${i}`)
  mkdirSync(`${ws}/.git/logs/refs`, { recursive: true })
  symlinkSync('/elsewhere', `${ws}/.git/refs/notes`)
  symlinkSync('main', `${ws}/.git/refs/remotes/origin/HEAD`)
  const before = linksAtTop(`${ws}/.git`)
  symlinkSync('../../../../other/.git/refs/heads', `${ws}/.git/refs/remotes/upstream`)
  symlinkSync('/etc/x', `${ws}/.git/logs/HEAD`)
  expect(remove('busy', `${ws}/.git`, before)).toEqual(['.git/logs/HEAD /etc/x'])
  expect(remove('all', `${ws}/.git`, before)).toEqual([
    '.git/refs/remotes/upstream ../../../../other/.git/refs/heads',
  ])
})

test('no number of directories hides a link from the last look', () => {
  for (let i = 0; i < 20_100; i++) mkdirSync(`${ws}/.git/refs/a/d${i}`, { recursive: true })
  mkdirSync(`${ws}/.git/refs/z`)
  symlinkSync('/etc/x', `${ws}/.git/refs/z/main`)
  expect(remove('all')).toEqual(['.git/refs/z/main /etc/x'])
})

test('a link within the directory, and one that was at the top before, are kept', () => {
  mkdirSync(`${ws}/.git/logs`, { recursive: true })
  symlinkSync('refs/heads/main', `${ws}/.git/HEAD`)
  symlinkSync('/elsewhere/refs', `${ws}/.git/refs`)
  const before = linksAtTop(`${ws}/.git`)
  symlinkSync('../../f', `${ws}/.git/logs/HEAD`)
  expect(remove('all', `${ws}/.git`, before)).toEqual(['.git/logs/HEAD ../../f'])
})

test('the user’s links are kept: hooks in the project, a shared exclude file, parts of another repository', () => {
  for (const dir of ['hooks', 'info', 'logs', 'modules/a/hooks'])
    mkdirSync(`${ws}/.git/${dir}`, { recursive: true })
  for (const at of ['hooks/pre-commit', 'info/exclude', 'logs/refs', 'lfs', 'modules/a/hooks/x', 'modules/b'])
    symlinkSync('../../../elsewhere', `${ws}/.git/${at}`)
  expect(remove('all', `${ws}/.git`, linksAtTop(`${ws}/.git`))).toEqual([])
})

test('a git directory that is itself a link is not entered', () => {
  mkdirSync(`${ws}/other`)
  symlinkSync('/etc/x', `${ws}/other/MERGE_MSG`)
  symlinkSync('other', `${ws}/.git`)
  expect(remove('all')).toEqual([])
})

test('in a bare repository as workspace only the names that git writes are checked', () => {
  mkdirSync(`${ws}/main/bin`, { recursive: true })
  symlinkSync('/usr/bin/python3', `${ws}/main/bin/python`)
  symlinkSync('/etc/x', `${ws}/FETCH_HEAD`)
  expect(remove('all', ws)).toEqual(['FETCH_HEAD /etc/x'])
  expect(lstatSync(`${ws}/main/bin/python`).isSymbolicLink()).toBe(true)
})

test('a non-UTF-8 name hides no link', () => {
  mkdirSync(`${ws}/.git/logs`, { recursive: true })
  symlinkSync('/etc/x', Buffer.concat([Buffer.from(`${ws}/.git/logs/`), Buffer.of(0x61, 0xff, 0x62)]))
  expect(remove('all')).toHaveLength(1)
  expect(readdirSync(`${ws}/.git/logs`)).toEqual([])
})
