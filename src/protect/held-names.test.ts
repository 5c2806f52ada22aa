import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { NOTHING, Places } from '../survey/places.ts'
import { Quarantine } from './quarantine.ts'
import type { QuarantineEvent } from './quarantine-event.ts'

let base = ''
let ws = ''
let events: QuarantineEvent[] = []
const open: Quarantine[] = []

beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), 'pen-held-')))
  ws = `${base}/ws`
  mkdirSync(ws)
  events = []
})
afterEach(() => {
  for (const q of open.splice(0)) q.stop()
  rmSync(base, { recursive: true, force: true })
})

function guard(dir = `${base}/q`): Quarantine {
  const places = new Places()
  for (const name of ['.envrc', '.vscode']) places.add(`${ws}/${name}`, ws)
  const { watch, protect: held } = places.found()
  const tell = (event: QuarantineEvent) => events.push(event)
  const q = new Quarantine({ watch, held, hasMounts: true, dir, tell })
  open.push(q)
  // The first look of a run.
  q.sweep()
  return q
}

function plant(path: string, text = 'evil'): void {
  mkdirSync(join(ws, path, '..'), { recursive: true })
  writeFileSync(`${ws}/${path}`, text)
}

describe('a held place that changes while the sandbox has mounts', () => {
  const stats = (name: string) => lstatSync(`${ws}/${name}`, { bigint: true })
  const replace = (text = 'new'): void => {
    writeFileSync(`${ws}/draft`, text)
    renameSync(`${ws}/draft`, `${ws}/.envrc`)
  }

  test('stays when it was replaced by one rename and nothing inside has it open, again and again', async () => {
    plant('.envrc', 'old')
    const q = guard()
    for (const text of ['one', 'two', 'three']) {
      replace(text)
      expect(q.sweep()).toEqual([{ kind: 'lost', path: `${ws}/.envrc`, gone: false }])
      expect(q.hold(`${ws}/.envrc`, stats('.envrc'))).toBe(true)
      // The user may also write in place.
      writeFileSync(`${ws}/.envrc`, text)
      expect(q.sweep()).toEqual([])
    }
    replace('last')
    q.finish()
    expect(readFileSync(`${ws}/.envrc`, 'utf8')).toBe('last')
    expect(q.held()).toEqual([`${ws}/.envrc`])
  })

  const remove = (): void => rmSync(`${ws}/.envrc`)
  const make = (): void => plant('.envrc', 'new')
  const link = (): void => linkSync(`${ws}/.envrc`, `${ws}/x`)
  const flood = (): void => {
    writeFileSync(`${ws}/n0`, '')
    for (let i = 0; i < 8400; i++) renameSync(`${ws}/n${i % 2}`, `${ws}/n${(i + 1) % 2}`)
  }
  test.each<[string, ...(() => void)[]]>([
    ['was removed and made again', remove, make],
    ['was moved away and made again', () => renameSync(`${ws}/.envrc`, `${ws}/x`), make],
    ['was replaced twice', replace, replace],
    ['was replaced and written', replace, make],
    ['was replaced and has another hard link', replace, link],
    ['is a link now', remove, () => symlinkSync('x', `${ws}/.envrc`)],
    ['is a directory now', remove, () => plant('.envrc/x')],
    ['was replaced among more events than the kernel queues', flood, replace],
  ])('is moved when it %s', (_, ...changes) => {
    plant('.envrc', 'old')
    const q = guard()
    for (const change of changes) change()
    expect(q.sweep()).toMatchObject([{ kind: 'moved', path: `${ws}/.envrc`, mayBeUsers: true }])
    expect([existsSync(`${ws}/.envrc`), q.held()]).toEqual([false, []])
    // What comes next may be the user's too, such as the same file that is moved back.
    plant('.envrc', 'again')
    expect(q.sweep()).toMatchObject([{ kind: 'moved', mayBeUsers: true }])
  })

  const away = (): void => renameSync(`${ws}/.envrc`, `${ws}/x`)
  const back = (): void => renameSync(`${ws}/x`, `${ws}/.envrc`)

  test('is moved when the file of the start was away and is back: meanwhile the sandbox could write it', () => {
    plant('.envrc', 'old')
    const q = guard()
    away()
    expect(q.sweep()).toEqual([{ kind: 'lost', path: `${ws}/.envrc`, gone: true }])
    back()
    expect(q.sweep()).toMatchObject([{ kind: 'moved', path: `${ws}/.envrc`, mayBeUsers: true }])
  })

  test.each<[string, ...(() => void)[]]>([
    ['was away and back'],
    ['was away and back, and then replaced by one rename', replace],
  ])('is moved when it %s before pen held it again', (_, ...changes) => {
    plant('.envrc', 'old')
    const q = guard()
    for (const change of [away, back]) change()
    q.sweep()
    for (const change of changes) change()
    q.sweep()
    if (existsSync(`${ws}/.envrc`)) expect(q.hold(`${ws}/.envrc`, stats('.envrc'))).toBe(false)
    expect(events.at(-1)).toMatchObject({ kind: 'moved', path: `${ws}/.envrc`, mayBeUsers: true })
  })

  test('is moved when a process inside may have the new file open', () => {
    plant('.envrc', 'old')
    const q = guard()
    replace()
    q.sweep()
    expect(q.hold(`${ws}/.envrc`, undefined)).toBe(false)
    expect(events.at(-1)).toMatchObject({ kind: 'moved', mayBeUsers: true })
    expect(readFileSync(`${base}/q/0001-.envrc`, 'utf8')).toBe('new')
  })

  test('is moved when it is a directory, and nothing of it is deleted, however large it is', () => {
    plant('.vscode/settings.json', 'old')
    const q = guard()
    renameSync(`${ws}/.vscode`, `${ws}/old`)
    plant('.vscode/f')
    for (let i = 0; i < 6000; i++) linkSync(`${ws}/.vscode/f`, `${ws}/.vscode/${i}`)
    expect(q.sweep()).toMatchObject([{ kind: 'moved', what: 'directory', mayBeUsers: true }])
    expect(readdirSync(`${base}/q/0001-.vscode`)).toHaveLength(6001)
    expect(events.slice(1)).toEqual([])
  })

  test('is renamed beside its place, and not copied, when the quarantine is on another file system', () => {
    if (lstatSync('/dev/shm', { throwIfNoEntry: false })?.dev === lstatSync(base).dev) return
    const away = mkdtempSync('/dev/shm/pen-quarantine-')
    try {
      plant('.envrc', 'old')
      const q = guard(`${away}/q`)
      rmSync(`${ws}/.envrc`)
      plant('.envrc', 'new')
      const [event] = q.sweep()
      expect(event).toMatchObject({ kind: 'stuck', why: 'EXDEV', mayBeUsers: true })
      const aside = (event as { aside?: string }).aside ?? ''
      expect(readFileSync(aside, 'utf8')).toBe('new')
      // The next start reports it again, and deletes nothing.
      const watch = [{ path: aside, root: ws, rule: NOTHING }]
      const next = new Quarantine({ watch, dir: `${away}/q`, tell: one => events.push(one) })
      next.finish()
      expect([events.at(-1), readdirSync(ws)]).toMatchObject([{ kind: 'stuck', aside }, [basename(aside)]])
    } finally {
      rmSync(away, { recursive: true, force: true })
    }
  })
})
