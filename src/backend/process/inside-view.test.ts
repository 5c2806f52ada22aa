import { expect, test } from 'bun:test'
import { existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { UndoStack } from '../../base/undo.ts'
import type { Plan } from '../../plan/plan.ts'
import { SETSID_PATH } from '../../plan/system-view.ts'
import { withInsidePath } from './inside-path.ts'
import { showInside } from './inside-view.ts'

const planWith = (...places: readonly string[]): Plan =>
  ({
    steps: [
      { op: 'tmpfs', at: '/run', size: 1, mode: 0o755 },
      ...places.map(at => ({ op: 'bind', from: '/usr/bin/setsid', at, mode: 'ro', why: 'system' })),
      { op: 'seal', at: '/' },
    ],
    env: [{ name: 'PATH', value: '/usr/bin', secret: false }],
    runAs: 'self',
    listedExec: false,
  }) as unknown as Plan

test('a directory of the run is read-only, is mounted before its entries, and is removed with the run', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'pen-inside-'))
  const undo = new UndoStack()
  const { plan, dir } = showInside(planWith(SETSID_PATH), { stateDir, run: 'r1' }, undo)
  expect(plan.steps.map(({ at }) => at as string)).toEqual(['/run', '/run/pen', SETSID_PATH, '/'])
  expect(plan.steps[1]).toMatchObject({ op: 'bind', from: dir, mode: 'ro' })
  expect(lstatSync(dir).mode & 0o777).toBe(0o755)
  expect(lstatSync(join(dir, '..')).mode & 0o777).toBe(0o700)
  // A mount needs a mount point.
  expect(readdirSync(dir)).toEqual(['setsid'])
  await undo.unwind()
  expect(existsSync(dir)).toBe(false)
  rmSync(stateDir, { recursive: true })
})

test('pen is on the PATH, unless a policy lists its programs', () => {
  const pathOf = (plan: Plan) => withInsidePath(plan).env[0]?.value
  expect(pathOf(planWith())).toBe('/usr/bin:/run/pen')
  expect(pathOf({ ...planWith(), listedExec: true })).toBe('/usr/bin:/run/pen')
  expect(pathOf(planWith(SETSID_PATH))).toBe('/usr/bin')
})

test('the directory of a killed pen is removed, and that of a living one is not', async () => {
  const stateDir = mkdtempSync(join(tmpdir(), 'pen-inside-'))
  const undo = new UndoStack()
  const { dir } = showInside(planWith(), { stateDir, run: 'r1' }, undo)
  const dead = join(stateDir, 'inside/pen-999999999-1-r0')
  mkdirSync(join(dead, 'deep'), { recursive: true })
  const { dir: second } = showInside(planWith(), { stateDir, run: 'r2' }, undo)
  expect([existsSync(dead), existsSync(dir), existsSync(second)]).toEqual([false, true, true])
  await undo.unwind()
  rmSync(stateDir, { recursive: true })
})
