import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Plan } from '../plan/plan.ts'
import type { GuestPath, HostPath } from '../policy/files/path.ts'
import { PRESETS } from '../policy/presets.ts'
import { NOTE_PATH } from '../policy/profile.ts'
import { leaveInstructions, leaveNote } from './instructions.ts'
import type { Prepared } from './prepare.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pen-instructions-'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

describe('the note', () => {
  const leave = (name: string, isShown = true): void => {
    const file = join(root, 'notes', name) as HostPath
    const step = { op: 'bind', from: file, at: NOTE_PATH, mode: 'ro', why: 'system' }
    leaveNote({ note: { text: 'text', file } }, { steps: isShown ? [step] : [] } as unknown as Plan)
  }

  test('is written once, for the sandbox to read', () => {
    leave('a.md')
    const { mode, ino } = statSync(join(root, 'notes/a.md'))
    expect(mode & 0o777).toBe(0o644)
    leave('a.md')
    expect(statSync(join(root, 'notes/a.md')).ino).toBe(ino)
  })

  test('is not written for a plan that does not show it', () => {
    leave('a.md', false)
    expect(existsSync(join(root, 'notes/a.md'))).toBe(false)
  })

  test('of another policy stays while a run may show it, and goes when none can', () => {
    leave('old.md')
    leave('lately.md')
    utimesSync(join(root, 'notes/old.md'), 0, 0)
    leave('new.md')
    expect(['old', 'lately', 'new'].map(name => existsSync(join(root, `notes/${name}.md`)))).toEqual([
      false,
      true,
      true,
    ])
  })
})

describe('instructions in a volume', () => {
  const { codex } = PRESETS
  const file = () => join(root, 'codex/AGENTS.md')
  const prepared = (from: string): Prepared => {
    const at = '/home/agent/.codex' as GuestPath
    const steps = [{ op: 'bind', from: from as HostPath, at, mode: 'rw', why: '' }]
    return { facts: { volumes: root }, plan: { workspace: '/w/app', steps } } as unknown as Prepared
  }

  test('lead to the note', () => {
    leaveInstructions(codex, prepared(join(root, 'codex')))
    expect(readlinkSync(file())).toBe(NOTE_PATH)
    leaveInstructions(codex, prepared(join(root, 'codex')))
  })

  test('leave what is there as it is', () => {
    mkdirSync(join(root, 'codex'))
    writeFileSync(file(), 'mine')
    leaveInstructions(codex, prepared(join(root, 'codex')))
    expect(readFileSync(file(), 'utf8')).toBe('mine')
  })

  test('are not made where the user mounted something else', () => {
    leaveInstructions(codex, prepared('/home/you/.codex'))
    expect(existsSync(file())).toBe(false)
  })
})
