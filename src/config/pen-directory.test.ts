import { describe, expect, test } from 'bun:test'
import {
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { temporaryProject } from '../../test/temporary-project.ts'
import { PenError } from '../base/error.ts'
import { PenDirectory } from './pen-directory.ts'

const refusal = (work: () => unknown): string => {
  try {
    work()
  } catch (error) {
    if (error instanceof PenError) return `${error.code} ${error.message}`
    throw error
  }
  return 'taken'
}

describe('the .pen/ of a project', () => {
  test('is read and written whole, and errors use the names that people know', () => {
    using project = temporaryProject()
    expect(PenDirectory.open(project.workspace)).toBeUndefined()
    using directory = PenDirectory.openOrMake(project.workspace)
    expect(directory.read('config.json')).toBeUndefined()
    directory.write('config.json', '{}\n')
    expect(directory.read('config.json')).toEqual({
      file: `${project.workspace}/.pen/config.json`,
      bytes: Buffer.from('{}\n'),
    })
    expect(lstatSync(join(project.workspace, '.pen/config.json')).mode & 0o777).toBe(0o644)
    expect(readdirSync(join(project.workspace, '.pen'))).toEqual(['config.json'])
    expect([directory.remove('config.json'), directory.remove('config.json')]).toEqual([true, false])
  })

  test('is refused if it is a link or a file', () => {
    using project = temporaryProject()
    mkdirSync(join(project.home, 'elsewhere'))
    writeFileSync(join(project.home, 'elsewhere/config.json'), '{"version":1}')
    symlinkSync('../elsewhere', join(project.workspace, '.pen'))
    for (const open of [PenDirectory.open, PenDirectory.openOrMake])
      expect(refusal(() => open(project.workspace))).toMatch(/^CONFIG_FILE .*\/\.pen is a link or a file/)
    expect(readdirSync(join(project.home, 'elsewhere'))).toEqual(['config.json'])
  })

  test.each(['link', 'directory', 'pipe'])('holds no %s in the place of a document', kind => {
    using project = temporaryProject()
    using directory = PenDirectory.openOrMake(project.workspace)
    const path = join(project.workspace, '.pen/config.json')
    const secret = join(project.home, 'secret')
    writeFileSync(secret, '{"version":1}')
    if (kind === 'link') symlinkSync(secret, path)
    if (kind === 'directory') mkdirSync(path)
    if (kind === 'pipe') Bun.spawnSync(['mkfifo', path])
    expect(refusal(() => directory.read('config.json'))).toContain(`CONFIG_FILE ${path} is`)
    expect(directory.peek('config.json')).toBeUndefined()
  })

  test('replaces a link or a hard link, and never writes through it', () => {
    using project = temporaryProject()
    using directory = PenDirectory.openOrMake(project.workspace)
    const secret = join(project.home, 'secret')
    writeFileSync(secret, 'mine')
    symlinkSync(secret, join(project.workspace, '.pen/config.json'))
    linkSync(secret, join(project.workspace, '.pen/config.schema.json'))
    directory.write('config.json', 'new')
    directory.write('config.schema.json', 'new')
    expect(readFileSync(secret, 'utf8')).toBe('mine')
    expect(lstatSync(join(project.workspace, '.pen/config.json')).isFile()).toBe(true)
  })

  test('stays the one that was opened, when another takes its name', () => {
    using project = temporaryProject()
    using directory = PenDirectory.openOrMake(project.workspace)
    directory.write('config.json', 'old')
    const elsewhere = join(project.home, 'elsewhere')
    mkdirSync(elsewhere)
    Bun.spawnSync(['mv', join(project.workspace, '.pen'), join(project.workspace, 'was')])
    symlinkSync(elsewhere, join(project.workspace, '.pen'))
    expect(directory.read('config.json')?.bytes.toString()).toBe('old')
    directory.write('config.json', 'new')
    expect(readdirSync(elsewhere)).toEqual([])
    expect(readFileSync(join(project.workspace, 'was/config.json'), 'utf8')).toBe('new')
  })

  test('a failed write is reported by the name that people know', () => {
    using project = temporaryProject()
    using directory = PenDirectory.openOrMake(project.workspace)
    mkdirSync(join(project.workspace, '.pen/config.json'))
    expect(refusal(() => directory.write('config.json', 'x'))).toBe(
      `STATE could not write ${project.workspace}/.pen/config.json (EISDIR)`,
    )
  })
})
