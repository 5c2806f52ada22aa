import { afterAll, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onHost, requireMountPoints } from './mount-points.ts'

const dir = mkdtempSync(join(tmpdir(), 'pen-points-'))
afterAll(() => rmSync(dir, { recursive: true }))
mkdirSync(join(dir, 'there'))
const project = { from: dir, at: '/p', mode: 'rw' as const }
const nested = { from: '/elsewhere', at: '/p/there', mode: 'rw' as const }

test('a path inside maps to the host through the nearest mount around it', () => {
  expect(onHost('/p/there/x', [project, nested])).toBe('/elsewhere/x')
  expect(onHost('/p/there', [project, nested])).toBe(join(dir, 'there'))
  expect([onHost('/p', [project]), onHost('/pp/x', [project])]).toEqual([undefined, undefined])
})

test('a mount in a directory of the host needs an existing mount point; in the image it does not', () => {
  expect(() => requireMountPoints(['/p/there', '/image/x', '/p'], [project])).not.toThrow()
  expect(() => requireMountPoints(['/p/absent'], [project])).toThrow('cannot mount at /p/absent')
})

test('a mount that begins empty needs none either', () => {
  const empty = { at: '/p/there' }
  expect(() => requireMountPoints(['/p/there/new/place'], [project, empty])).not.toThrow()
  expect(() => requireMountPoints(['/p/there/new/place'], [project])).toThrow('it does not exist')
  expect(onHost('/p/there/new', [project, empty])).toBeUndefined()
})

test('P4 a link of the project cannot redirect a mount, at its path or in a parent', () => {
  mkdirSync(join(dir, 'way/there'), { recursive: true })
  symlinkSync('new/place', join(dir, 'link'))
  symlinkSync('way', join(dir, 'other-way'))
  expect(() => requireMountPoints(['/p/way/there'], [project])).not.toThrow()
  for (const at of ['/p/link', '/p/other-way/there'])
    expect(() => requireMountPoints([at], [project])).toThrow('its path contains a link')
})
