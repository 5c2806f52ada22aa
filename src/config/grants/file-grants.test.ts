import { describe, expect, test } from 'bun:test'
import { readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryProject, temporaryProject, withHome } from '../../../test/temporary-project.ts'
import { PenError } from '../../base/error.ts'
import type { FileGrant } from '../../policy/files/decide-grant.ts'
import type { HostPath } from '../../policy/files/path.ts'
import { findProject } from '../project.ts'
import { editFileGrants, fileGrantsFile, readFileGrants } from './file-grants.ts'

const grant = (path: string, until?: number): FileGrant => ({
  path: path as HostPath,
  kind: 'file',
  write: true,
  execute: false,
  until,
  root: { dev: 64_769n, ino: 18_446_744_073_709_551_615n },
})

const inProject = (project: TemporaryProject) =>
  withHome(project.home, async () => findProject(project.workspace))

function refusal(act: () => unknown): string {
  try {
    act()
  } catch (error) {
    if (error instanceof PenError) return error.code
    throw error
  }
  return 'read'
}

describe('grants', () => {
  test('are read as they were written, for the user alone; those whose time is over are left out of the next edit', async () => {
    using temporary = temporaryProject()
    const project = await inProject(temporary)
    expect(readFileGrants(project.stateDir)).toEqual([])
    const later = Date.now() + 60_000
    await editFileGrants(project, () => [grant('/a', later), grant('/b'), grant('/c', 1)])
    expect(readFileGrants(project.stateDir)).toEqual([grant('/a', later), grant('/b'), grant('/c', 1)])
    await editFileGrants(project, grants => grants)
    expect(readFileGrants(project.stateDir).map(({ path }) => path as string)).toEqual(['/a', '/b'])
    expect(statSync(fileGrantsFile(project.stateDir)).mode & 0o777).toBe(0o600)
    expect(readdirSync(project.stateDir)).toEqual(['file-grants.json'])
  })

  test('of twenty edits at once are all there', async () => {
    using temporary = temporaryProject()
    const project = await inProject(temporary)
    const names = Array.from({ length: 20 }, (_, i) => `/f${i}`)
    await Promise.all(names.map(name => editFileGrants(project, grants => [...grants, grant(name)])))
    expect(new Set(readFileGrants(project.stateDir).map(({ path }) => path as string))).toEqual(
      new Set(names),
    )
  })

  test('are no more than their bound, and the old ones stay', async () => {
    using temporary = temporaryProject()
    const project = await inProject(temporary)
    await editFileGrants(project, () => [grant('/a')])
    const many = Array.from({ length: 257 }, (_, i) => grant(`/f${i}`))
    expect(editFileGrants(project, () => many)).rejects.toThrow('more than 256')
    expect(readFileGrants(project.stateDir).length).toBe(1)
  })

  test('with one bad byte are refused whole, and can be started over', async () => {
    using temporary = temporaryProject()
    const project = await inProject(temporary)
    await editFileGrants(project, () => [grant('/a')])
    const file = fileGrantsFile(project.stateDir)
    const good = readFileSync(file, 'utf8')
    for (const [from, to] of [
      ['"version": 1', '"version": 2'],
      ['"/a"', '"a"'],
      ['"/a"', '"/a/../b"'],
      ['"/a"', '"/"'],
      ['"kind": "file"', '"kind": "fifo"'],
      ['"write": true', '"write": 1'],
      ['"until": null', '"until": "soon"'],
      ['"until": null', '"until": -1'],
      ['"execute": false,', ''],
      ['"execute": false,', '"execute": false, "more": true,'],
      ['64769:', '64769;'],
      ['"grants"', '"grants": [], "grants"'],
    ] as const) {
      expect(good).toContain(from)
      writeFileSync(file, good.replace(from, to))
      expect([to, refusal(() => readFileGrants(project.stateDir))]).not.toEqual([to, 'read'])
    }
    await editFileGrants(project, () => [], 'discard')
    expect(readFileGrants(project.stateDir)).toEqual([])
  })

  test('behind a link are not read', async () => {
    using temporary = temporaryProject()
    const project = await inProject(temporary)
    await editFileGrants(project, () => [])
    const elsewhere = join(temporary.root, 'elsewhere')
    writeFileSync(elsewhere, readFileSync(fileGrantsFile(project.stateDir)))
    await Bun.file(fileGrantsFile(project.stateDir)).delete()
    symlinkSync(elsewhere, fileGrantsFile(project.stateDir))
    expect(refusal(() => readFileGrants(project.stateDir))).toBe('CONFIG_FILE')
  })
})
