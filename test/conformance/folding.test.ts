import { expect } from 'bun:test'
import { type ChildProcess, spawn, spawnSync } from 'node:child_process'
import { existsSync, lchownSync } from 'node:fs'
import { join } from 'node:path'
import { skipUnless } from '../skip.ts'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'
import { agrees } from './doctor.ts'
import { isRoot, ordinary } from './launcher.ts'

const PYTHON = '/usr/bin/python3'
const FOLDING = join(import.meta.dir, 'folding.py')
const imports = (name: string) => spawnSync(PYTHON, ['-c', `import ${name}`]).status === 0
const ready = existsSync('/dev/fuse') && (imports('fusepy') || imports('fuse'))
const onFuse = skipUnless(ready, 'FUSE or its Python library is missing')

/** The box's directory `folded`: a project on a case-insensitive file system. */
async function withFolding(
  box: Box,
  sensitive: boolean,
  body: (project: string) => Promise<void>,
): Promise<void> {
  const owner = isRoot ? (ordinary ?? box.launcher.who) : box.launcher.who
  const [source, at] = [box.directory(join(box.root, 'source')), box.directory(join(box.root, 'folded'))]
  lchownSync(source, owner.uid, owner.gid)
  const server: ChildProcess = spawn(PYTHON, [FOLDING, source, at, ...(sensitive ? ['exact'] : [])], {
    stdio: 'ignore',
  })
  try {
    for (
      let i = 0;
      i < 500 && !spawnSync('stat', ['-fc', '%T', at], { encoding: 'utf8' }).stdout.includes('fuse');
      i++
    )
      await Bun.sleep(10)
    const project = join(at, 'Project')
    const made = spawnSync(
      'sh',
      [
        '-c',
        `${owner.become.join(' ')} sh -ec 'mkdir "$1"; cd "$1"; git init -q .; echo SECRET > .env; echo a > .npmrc' sh "$1"`,
        'sh',
        project,
      ],
      { env: box.env(), encoding: 'utf8' },
    )
    expect([made.status, made.stderr]).toEqual([0, ''])
    await body(project)
  } finally {
    spawnSync(isRoot ? 'umount' : 'fusermount3', isRoot ? ['-l', at] : ['-uz', at])
    server.kill('SIGKILL')
  }
}

const NEEDS = { define: onFuse, needs: 'laterMounts', alone: true } as const

conformance(
  'P20 on a file system that folds names unseen by the kernel nothing runs without that gap',
  async box => {
    await withFolding(box, false, async project => {
      const refused = await box.sh('echo ran > mark', { cwd: project })
      expect([refused.code, existsSync(join(project, 'mark'))]).toEqual([125, false])
      expect(refused.stderr).toContain('names-folded')
      expect(refused.stderr).toContain('--accept-gap names-folded')
      const asked = agrees(box, '', { cwd: project })
      expect([asked.of('project')?.status, asked.of('project')?.fix]).toEqual([
        'fails',
        expect.stringContaining('--accept-gap names-folded'),
      ])
      const accepted = await box.sh('cat .env; echo ran > mark', {
        cwd: project,
        flags: ['--accept-gap', 'names-folded'],
      })
      expect([accepted.code, accepted.stdout, existsSync(join(project, 'mark'))]).toEqual([0, '', true])
      expect(accepted.stderr).toContain('accepted gaps: names-folded')
    })
  },
  { ...NEEDS, once: 'it is refused on the host, before a backend is asked' },
)

conformance(
  'P3 on a case-sensitive FUSE file system, denied and protected files are held',
  async box => {
    await withFolding(box, true, async project => {
      expect(agrees(box, '', { cwd: project }).of('project')?.why).toContain('it is a FUSE file system')
      const { stdout } = await box.sh(
        'cat .env .ENV; echo evil > .npmrc; echo evil > .git/config; cat .npmrc; echo ran > mark',
        { cwd: project },
      )
      expect([stdout, existsSync(join(project, 'mark'))]).toEqual(['a\n', true])
    })
  },
  NEEDS,
)
