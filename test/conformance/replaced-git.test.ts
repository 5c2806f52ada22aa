import { expect } from 'bun:test'
import { existsSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { conformance } from './conformance.ts'

/** What git does on the host, with what the sandbox left: the backend has no part in it. */
const ON_THE_HOST = { users: 'ordinary', once: 'git on the host is the same after every backend' } as const

const G = 'git -c user.name=A -c user.email=a@example.com -c protocol.file.allow=always'

/** Waits until the mount is gone, and plants a repository in its place. git on the host would run its monitor. */
const plant = (dir: string): string =>
  `echo ready; until [ ! -e ${dir}/.git/HEAD ] && [ ! -f ${dir}/.git ] && git init -q ${dir} 2>/dev/null; do sleep 0.005; done
  printf '[core]\\n\\tfsmonitor = echo evil > %s/evil; false\\n' "$PWD" >>${dir}/.git/config; sleep 30`

/** Each takes a mount of the sandbox away: what, where the repository is planted, and the command on the host. */
const REPLACED: readonly (readonly [string, string, string])[] = [
  ['.git', '.', 'rm -rf .git'],
  ['.git', '.', 'mv .git ../kept; mkdir -p .git'],
  ['lib/.git', 'lib', 'rm lib/.git'],
  ['empty', 'empty', 'rmdir empty'],
]

conformance(
  'P3 a .git that the host replaces during a run ends the sandbox, and git enters nothing it wrote there',
  async box => {
    box.host(`mkdir ../source; cd ../source; git init -q .; ${G} commit -q --allow-empty -m lib
      cd ../project; git init -q -b main .; for n in lib empty; do ${G} submodule --quiet add ../source $n; done
      ${G} commit -qm sub; git submodule --quiet deinit -f empty`)
    for (const [name, dir, command] of REPLACED) {
      box.host('rm -rf ../work; cp -a . ../work')
      const cwd = join(box.home, 'work')
      const { child, ended, printed } = box.start(['/bin/sh', '-c', plant(dir)], { cwd })
      await printed('ready')
      // The twin: what git does by itself replaces none of these.
      box.host(`cd ../work; ${G} commit -q --allow-empty -m twin; git pack-refs --all; git gc -q`)
      await Bun.sleep(600)
      expect([command, child.exitCode]).toEqual([command, null])
      box.host(`cd ../work; ${command}`)
      const { code, stderr } = await ended
      expect([command, code, stderr]).toEqual([
        command,
        137,
        expect.stringContaining(`${cwd}/${name} was replaced or removed on the host`),
      ])
      box.host('cd ../work; git status >/dev/null 2>&1 || true; rm -rf ../kept')
      expect([command, existsSync(join(cwd, 'evil'))]).toEqual([command, false])
      const left = readdirSync(join(cwd, dir === 'empty' && !existsSync(join(cwd, dir)) ? '.' : dir))
      expect([command, left.includes('.git') && dir !== 'empty' && name !== '.git']).toEqual([command, false])
    }
  },
)

conformance(
  'P3 a project that is moved during a run ends the sandbox; moved back, the next start takes its commit over',
  async box => {
    box.host(`mkdir ../there; cd ../there; git init -q -b main .; ${G} commit -q --allow-empty -m base`)
    const cwd = join(box.home, 'there')
    const commit = `${G} commit -q --allow-empty -m inside; echo ready; sleep 30`
    const { ended, printed } = box.start(['/bin/sh', '-c', commit], { cwd })
    await printed('ready')
    box.host('mv ../there ../elsewhere')
    const { code, stderr } = await ended
    expect([code, stderr]).toEqual([137, expect.stringContaining('its repository is kept at')])
    expect(stderr).not.toContain('INTERNAL')
    box.host('mv ../elsewhere ../there')
    expect((await box.start(['/bin/true'], { cwd }).ended).code).toBe(0)
    expect(box.host('git -C ../there log --format=%s')).toContain('inside')
  },
  ON_THE_HOST,
)

conformance(
  'P3 a project that the host moves or removes during a run ends it with the place of its repository',
  async box => {
    for (const command of ['mv work ../moved', 'rm -rf work', 'mv work ../moved; mkdir work']) {
      box.host(
        `rm -rf ../moved work; git init -q -b main work; cd work; ${G} commit -q --allow-empty -m first`,
      )
      const commit = `echo x >f; git add f; ${G} commit -qm inside; git rev-parse HEAD; echo ready; sleep 30`
      const cwd = join(box.project, 'work')
      const { child, ended, printed } = box.start(['/bin/sh', '-c', commit], { cwd })
      await printed('ready')
      expect([command, child.exitCode]).toEqual([command, null])
      box.host(command)
      const { code, stdout, stderr } = await ended
      const dir = /its repository is kept at (\S+)/.exec(stderr)?.[1]
      expect([command, code, stderr, dir]).toEqual([command, 137, expect.any(String), expect.any(String)])
      expect(stderr).not.toContain('INTERNAL')
      const id = /^[0-9a-f]{40}$/m.exec(stdout)?.[0]
      expect(existsSync(join(dir ?? '', 'objects', id?.slice(0, 2) ?? '-', id?.slice(2) ?? '-'))).toBe(true)
    }
  },
  ON_THE_HOST,
)

conformance(
  'P3 a moved project shows no later denied file, and a new clone at its place keeps its repository',
  async box => {
    for (const [make, command] of [
      ['mkdir work', 'mv work moved; sleep 1; echo SECRET >moved/.env'],
      ['git init -q work', 'rm -rf work; git init -q work'],
    ] as const) {
      box.host(`rm -rf moved work; ${make}`)
      const read = 'echo ready; until cat .env 2>/dev/null; do sleep 0.02; done; sleep 30'
      const { ended, printed } = box.start(['/bin/sh', '-c', read], { cwd: join(box.project, 'work') })
      await printed('ready')
      box.host(command)
      const { code, stdout, stderr } = await ended
      expect([command, code, stdout]).toEqual([command, 137, 'ready\n'])
      // While `rm -rf` is at work, pen may see that .git is gone first.
      expect(stderr).toMatch(/\/work(\/\.git was| was moved,)[ a-z]* on the host/)
      expect(stderr).not.toContain('planted-')
    }
    box.host('git -C work status')
  },
  ON_THE_HOST,
)
