import { afterEach, beforeEach, expect, test } from 'bun:test'
import { chmodSync, existsSync, lstatSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import {
  finishLayer,
  hasChanges,
  layerPaths,
  lockLayer,
  makeLayer,
  REVIEW_REPOSITORY,
  readLayer,
  removeLayer,
  renewWork,
} from './layer.ts'

let base: string
let state: string
let project: string

beforeEach(() => {
  base = mkdtempSync(`${tmpdir()}/pen-layer-`)
  state = `${base}/state`
  project = `${base}/project`
  mkdirSync(state)
  mkdirSync(project)
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

const made = (kind: 'overlay' | 'copy' = 'overlay') => {
  makeLayer(state, project)
  return finishLayer(state, { workspace: project, kind, made: 5, base: null })
}

test('a layer is read as it was made, and is empty until the sandbox writes', () => {
  const layer = made()
  expect(readLayer(state)).toEqual(layer)
  expect(hasChanges(state)).toBe(false)
  writeFileSync(`${layerPaths(state).upper}/new`, '')
  expect(hasChanges(state)).toBe(true)
})

test('a layer that was not finished is none, and the next one replaces it', () => {
  makeLayer(state, project)
  writeFileSync(`${layerPaths(state).upper}/half`, '')
  expect(readLayer(state)).toBe(undefined)
  expect(hasChanges(state)).toBe(false)
  made()
  expect(hasChanges(state)).toBe(false)
})

test('the merged root gets the mode of the project', () => {
  chmodSync(project, 0o750)
  made()
  expect(lstatSync(layerPaths(state).upper).mode & 0o777).toBe(0o750)
  expect(lstatSync(layerPaths(state).dir).mode & 0o777).toBe(0o700)
  chmodSync(layerPaths(state).upper, 0)
  expect(hasChanges(state)).toBe(false)
})

test('a damaged record is an error that says what to do', () => {
  made()
  writeFileSync(layerPaths(state).record, '')
  expect(() => readLayer(state)).toThrow('the record of the review layer is damaged')
})

test('the work directory of the last mount is replaced, also when it is locked', () => {
  made()
  const { work } = layerPaths(state)
  mkdirSync(`${work}/work/incompat`, { recursive: true })
  chmodSync(`${work}/work`, 0)
  renewWork(state)
  expect(existsSync(`${work}/work`)).toBe(false)
})

test('a layer serves one at a time, and is gone when it is removed', async () => {
  made()
  const lock = await lockLayer(state)
  await expect(lockLayer(state, 20)).rejects.toThrow('runs with this review layer')
  lock.release()
  const again = await lockLayer(state, 20)
  const git = `${state}/git/${REVIEW_REPOSITORY}`
  mkdirSync(`${git}/dir`, { recursive: true })
  writeFileSync(`${git}/synced`, '')
  // Commits alone are changes too, until the last run has seen that there are none.
  expect(hasChanges(state)).toBe(true)
  writeFileSync(`${git}/seen`, 'clean\n')
  expect(hasChanges(state)).toBe(false)
  removeLayer(state)
  again.release()
  expect([layerPaths(state).dir, git].map(path => existsSync(path))).toEqual([false, false])
  expect(readLayer(state)).toBe(undefined)
})
