import { describe, expect, test } from 'bun:test'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryProject, withHome } from '../../test/temporary-project.ts'
import { PenError } from '../base/error.ts'
import { findHome, locate } from './locate.ts'

describe('a path on disk', () => {
  test('is found where links lead, with what is there', async () => {
    using project = temporaryProject()
    const { workspace } = project
    project.write('src/x', '')
    symlinkSync('src', join(workspace, 'link'))
    expect(locate(join(workspace, 'link/x'))).toEqual({ real: join(workspace, 'src/x'), kind: 'file' })
    expect(locate(join(workspace, 'link'))).toEqual({ real: join(workspace, 'src'), kind: 'directory' })
    expect(locate('/dev/null').kind).toBe('other')
  })

  test('that is behind a locked directory is unreachable, not absent', async () => {
    using project = temporaryProject()
    const { workspace } = project
    project.write('locked/x', '')
    chmodSync(join(workspace, 'locked'), 0)
    // Root may enter every directory, so another user asks.
    const asker = process.getuid?.() === 0 ? ['setpriv', '--reuid=65534', '--clear-groups'] : []
    for (const path of [project.root, workspace]) chmodSync(path, 0o755)
    const script = `import { locate } from '${import.meta.dir}/locate.ts'
      console.log(['locked/x', 'locked', 'nothing'].map(name => locate('${workspace}/' + name).kind).join())`
    const { stdout } = Bun.spawnSync([...asker, process.execPath, '-e', script], { env: { HOME: '/' } })
    expect(stdout.toString()).toBe('unreachable,directory,absent\n')
    chmodSync(join(workspace, 'locked'), 0o755)
  })

  test('that is absent stands below its nearest real ancestor', async () => {
    using project = temporaryProject()
    const { workspace } = project
    mkdirSync(join(workspace, 'real'))
    symlinkSync('real', join(workspace, 'link'))
    expect(locate(join(workspace, 'link/no/where'))).toEqual({
      real: join(workspace, 'real/no/where'),
      kind: 'absent',
    })
    writeFileSync(join(workspace, 'file'), '')
    expect(locate(join(workspace, 'file/below')).kind).toBe('absent')
  })

  test('that is a link to nowhere is where the link leads: its maker may make the target next', async () => {
    using project = temporaryProject()
    const { workspace, root } = project
    symlinkSync(join(root, 'outside/absent'), join(workspace, 'far'))
    symlinkSync('../sideways', join(workspace, 'near'))
    symlinkSync('near', join(workspace, 'twice'))
    expect(locate(join(workspace, 'far/x'))).toEqual({ real: join(root, 'outside/absent/x'), kind: 'absent' })
    expect(locate(join(workspace, 'near')).real).toBe(join(root, 'home/sideways'))
    expect(locate(join(workspace, 'twice')).real).toBe(join(root, 'home/sideways'))
  })

  test('in a circle of links is refused', async () => {
    using project = temporaryProject()
    const { workspace } = project
    symlinkSync('b', join(workspace, 'a'))
    symlinkSync('a', join(workspace, 'b'))
    symlinkSync('loop/x', join(workspace, 'loop'))
    for (const path of ['a', 'a/x', 'loop']) expect(() => locate(join(workspace, path))).toThrow(PenError)
  })
})

describe('HOME', () => {
  const home = (path: string) => withHome(path, async () => findHome() as string)

  test('is resolved to the directory that it is', async () => {
    using project = temporaryProject()
    symlinkSync(project.home, join(project.root, 'alias'))
    expect(await home(join(project.root, 'alias'))).toBe(project.home)
  })

  test.each(['relative', '', '/with\nnewline', '/does/not/exist'])(
    '%j is refused: state must not land in a project',
    async path => {
      expect(home(path)).rejects.toThrow(PenError)
    },
  )
})
