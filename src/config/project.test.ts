import { describe, expect, test } from 'bun:test'
import { mkdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { type TemporaryProject, temporaryProject, withHome } from '../../test/temporary-project.ts'
import { PenError } from '../base/error.ts'
import { findProject, namesOf, sandboxId, stateDirectories } from './project.ts'

const find = (project: TemporaryProject, directory: string) =>
  withHome(project.home, async () => findProject(directory))

describe('a sandbox id', () => {
  test.each([
    ['/h/u/My Project!', /^my-project-[0-9a-f]{16}$/],
    ['/h/u/日本', /^project-[0-9a-f]{16}$/],
    ['/h/u/-x-', /^x-[0-9a-f]{16}$/],
    [`/h/u/${'a'.repeat(200)}`, /^a{32}-[0-9a-f]{16}$/],
    ['/h/u/../..', /^project-[0-9a-f]{16}$/],
  ])('of %j is safe for every engine', (path, id) => {
    expect(sandboxId(path)).toMatch(id)
  })

  test('differs for every path, and is the same for one', () => {
    expect(sandboxId('/a/x')).not.toBe(sandboxId('/b/x'))
    expect(sandboxId('/a/x')).toBe(sandboxId('/a/x'))
  })
})

describe('the project', () => {
  test('is the current directory when pen knows none above it', async () => {
    using project = temporaryProject()
    const found = await find(project, project.workspace)
    expect([found.world.workspace as string, found.stateDir as string]).toEqual([
      project.workspace,
      project.stateDir,
    ])
  })

  test('is the nearest directory above that has a live config', async () => {
    using project = temporaryProject()
    project.writeLive('config.json', '{}')
    mkdirSync(join(project.workspace, 'deep/down'), { recursive: true })
    const found = await find(project, join(project.workspace, 'deep/down'))
    expect([found.world.workspace as string, found.cwd as string]).toEqual([
      project.workspace,
      join(project.workspace, 'deep/down'),
    ])
  })

  test('is not moved by a file that an agent can plant', async () => {
    using project = temporaryProject()
    project.write('.pen/config.json', '{}')
    project.write('agent-permissions.json', '{}')
    project.write('.git/config', '')
    mkdirSync(join(project.workspace, 'sub'))
    expect((await find(project, join(project.workspace, 'sub'))).world.workspace as string).toBe(
      join(project.workspace, 'sub'),
    )
  })

  test('has one id through whatever link it is entered', async () => {
    using project = temporaryProject()
    symlinkSync(project.workspace, join(project.root, 'alias'))
    expect((await find(project, join(project.root, 'alias'))).id).toBe(
      (await find(project, project.workspace)).id,
    )
  })

  test('is never a home, what holds it, pen’s own state, or a directory of the system', async () => {
    using project = temporaryProject()
    mkdirSync(join(project.home, '.pen/sandboxes'), { recursive: true })
    for (const path of [
      project.home,
      project.root,
      join(project.home, '.pen/sandboxes'),
      '/',
      '/etc',
      '/usr',
      '/proc/self',
      '/tmp',
    ])
      expect([path, await find(project, path).catch(error => error instanceof PenError)]).toEqual([
        path,
        true,
      ])
  })

  test('never holds pen’s own state, which may lie behind a link; elsewhere it may', async () => {
    using project = temporaryProject()
    mkdirSync(join(project.workspace, 'pen'))
    symlinkSync(join(project.workspace, 'pen'), join(project.home, '.pen'))
    expect(find(project, project.workspace)).rejects.toThrow("it holds pen's own state")
    mkdirSync(join(project.home, 'other'))
    const found = await find(project, join(project.home, 'other'))
    expect(found.world.state as string).toBe(join(project.workspace, 'pen'))
    mkdirSync(join(project.workspace, 'pen/sandboxes'))
    symlinkSync(join(project.home, 'other/state'), join(project.workspace, 'pen/sandboxes', found.id))
    expect(find(project, join(project.home, 'other'))).rejects.toThrow("it holds pen's own state")
  })

  test('that does not exist any more is an error', async () => {
    using project = temporaryProject()
    expect(find(project, join(project.workspace, 'gone'))).rejects.toThrow('no longer exists')
  })

  test('with a non-UTF-8 name is refused, and one with U+FFFD in its name is found', async () => {
    using project = temporaryProject()
    const odd = join(project.workspace, 'odd\ufffd')
    expect(find(project, odd)).rejects.toThrow('is not valid UTF-8')
    mkdirSync(odd)
    expect((await find(project, odd)).world.workspace as string).toBe(odd)
  })
})

describe('a named sandbox', () => {
  const found = (project: TemporaryProject, name: string) =>
    withHome(project.home, async () => findProject(project.workspace, name))

  test('has an id and a state of its own, and shares those of the project', async () => {
    using project = temporaryProject()
    const [a, b, none] = [
      await found(project, 'a'),
      await found(project, 'b'),
      await find(project, project.workspace),
    ]
    expect(new Set([a.id, b.id, none.id]).size).toBe(3)
    expect([a.stateDir as string, b.stateDir as string]).toEqual(
      ['a', 'b'].map(name => `${project.stateDir}/names/${name}`),
    )
    for (const one of [a, b, none]) expect(one.shared).toEqual({ id: none.id, stateDir: none.stateDir })
    expect(a.id).toMatch(/^[a-z0-9-]+-a-[0-9a-f]{16}$/)
  })

  test('makes its directory a project, from below too', async () => {
    using project = temporaryProject()
    const { stateDir } = await found(project, 'fix-a')
    mkdirSync(stateDir, { recursive: true })
    mkdirSync(join(project.workspace, 'deep'))
    const below = await find(project, join(project.workspace, 'deep'))
    expect(below.world.workspace as string).toBe(project.workspace)
    expect(namesOf(below.shared.stateDir)).toEqual(['fix-a'])
    expect(stateDirectories(below) as string[]).toEqual([project.stateDir, stateDir])
  })

  const odd = [
    '',
    '.',
    '..',
    '../x',
    'a/b',
    'a.b',
    'A',
    'a_b',
    '-a',
    'ä',
    'a b',
    'a\n',
    'a\0',
    'a'.repeat(33),
  ]
  test.each(odd)('cannot be called %j', async name => {
    using project = temporaryProject()
    await expect(found(project, name)).rejects.toThrow('cannot be the name of a sandbox')
  })

  test.each(['a', '7', 'fix-a', 'lock', 'names', 'a'.repeat(32)])('can be called %j', async name => {
    using project = temporaryProject()
    expect((await found(project, name)).name).toBe(name)
  })
})
