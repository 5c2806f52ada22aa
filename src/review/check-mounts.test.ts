import { afterEach, beforeEach, expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import type { Plan, PlannedLayer, Step } from '../plan/plan.ts'
import { mountableSteps } from './check-mounts.ts'

let base: string
let project: string
let layer: PlannedLayer

beforeEach(() => {
  base = realpathSync(mkdtempSync(`${tmpdir()}/pen-mounts-`))
  project = `${base}/project`
  for (const dir of ['project/dir', 'review/upper', 'review/merged'])
    mkdirSync(`${base}/${dir}`, { recursive: true })
  for (const name of ['file', 'dir/file']) writeFileSync(`${project}/${name}`, '')
  layer = { dir: `${base}/review`, kind: 'overlay' } as PlannedLayer
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

const upper = (path: string): string => `${base}/review/upper/${path}`
const top = (): Step => bind('', `${base}/review/merged`, 'rw')
const bind = (path: string, from: string, mode: 'ro' | 'rw'): Step =>
  ({ op: 'bind', from, at: project + path, mode, why: 'test' }) as Step
const cover = (path: string): Step => ({ op: 'cover', at: project + path, kind: 'file', why: 'test' }) as Step

/** Which of the steps after the project's are kept. */
const kept = (...steps: readonly Step[]): readonly boolean[] => {
  const all = mountableSteps({ workspace: project, steps: [top(), ...steps] } as unknown as Plan, layer)
  return steps.map(step => all.includes(step))
}

/** A directory through which nothing of the project shows. */
const SET_OPAQUE = 'import os, sys; os.setxattr(sys.argv[1], "user.overlay.opaque", b"y")'

/** As the kernel marks it. */
const deleted = (path: string): void => void spawnSync('mknod', [upper(path), 'c', '0', '0'])

test('what the project shows, and what was copied up, is covered and held', () => {
  mkdirSync(upper('dir'))
  writeFileSync(upper('dir/file'), 'own')
  expect(kept(cover('/file'), cover('/dir/file'), bind('/dir/file', `${project}/dir/file`, 'ro'))).toEqual([
    true,
    true,
    true,
  ])
})

test('nothing is mounted at a name that the layer deleted, replaced, or leads elsewhere', () => {
  deleted('file')
  expect(statSync(upper('file')).isCharacterDevice()).toBe(true)
  symlinkSync('/etc', upper('dir'))
  expect(kept(cover('/file'), cover('/dir/file'))).toEqual([false, false])
  rmSync(upper('dir'))
  mkdirSync(upper('dir'))
  spawnSync('python3', ['-c', SET_OPAQUE, upper('dir')])
  symlinkSync('/etc/passwd', upper('link'))
  expect(kept(cover('/dir/file'), cover('/link'), bind('/link', `${project}/file`, 'ro'))).toEqual([
    false,
    false,
    false,
  ])
})

test('a directory that the sandbox locked is looked into, and stays locked', () => {
  mkdirSync(upper('dir'))
  symlinkSync('/etc/passwd', upper('dir/file'))
  chmodSync(upper('dir'), 0)
  expect(kept(cover('/dir/file'))).toEqual([false])
  expect(statSync(upper('dir')).mode & 0o777).toBe(0)
})

test('a mount that the sandbox needs stops the start, by name, where the layer has something else', () => {
  const granted = bind('/dir', `${base}/review/merged/dir`, 'rw')
  const volume = bind('/dir', `${base}/elsewhere`, 'rw')
  mkdirSync(`${base}/elsewhere`)
  expect(kept(granted)).toEqual([true])
  expect(kept(volume)).toEqual([true])
  symlinkSync('/etc', upper('dir'))
  for (const step of [granted, volume])
    expect(() => kept(step)).toThrow(expect.objectContaining({ at: `${project}/dir`, code: 'PATH_REFUSED' }))
})

test('in a copy of the project, what is not in the copy is not there', () => {
  layer = { ...layer, kind: 'copy' }
  writeFileSync(`${base}/review/merged/file`, '')
  mkdirSync(`${base}/review/merged/.git`)
  // pen makes the sandbox's own git directory after this check.
  expect(kept(cover('/file'), cover('/dir/file'), bind('/.git', `${base}/not-yet`, 'rw'))).toEqual([
    true,
    false,
    true,
  ])
})

test('in a copy, the git directory that pen makes later can be mounted over the project’s', () => {
  mkdirSync(`${base}/review/merged/.git`)
  layer = { ...layer, kind: 'copy' }
  mkdirSync(`${project}/.git`)
  expect(kept(bind('/.git', `${base}/git/review/dir`, 'rw'))).toEqual([true])
})
