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

test('a path inside is on the host where the nearest mount around it says', () => {
  expect(onHost('/p/there/x', [project, nested])).toBe('/elsewhere/x')
  expect(onHost('/p/there', [project, nested])).toBe(join(dir, 'there'))
  expect([onHost('/p', [project]), onHost('/pp/x', [project])]).toEqual([undefined, undefined])
})

test('a mount in a directory of the host needs a place that is there; in the image none', () => {
  expect(() => requireMountPoints(['/p/there', '/image/x', '/p'], [project])).not.toThrow()
  expect(() => requireMountPoints(['/p/absent'], [project])).toThrow('nothing can be mounted at /p/absent')
})

test('what begins empty needs none either, whatever it stands on', () => {
  const empty = { at: '/p/there' }
  expect(() => requireMountPoints(['/p/there/new/place'], [project, empty])).not.toThrow()
  expect(() => requireMountPoints(['/p/there/new/place'], [project])).toThrow('it does not exist')
  expect(onHost('/p/there/new', [project, empty])).toBeUndefined()
})

test('P4 a mount is led nowhere by a link of the project’s, at its place or on the way there', () => {
  mkdirSync(join(dir, 'way/there'), { recursive: true })
  symlinkSync('new/place', join(dir, 'link'))
  symlinkSync('way', join(dir, 'other-way'))
  expect(() => requireMountPoints(['/p/way/there'], [project])).not.toThrow()
  for (const at of ['/p/link', '/p/other-way/there'])
    expect(() => requireMountPoints([at], [project])).toThrow('there is a link on the way')
})
