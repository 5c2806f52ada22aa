/**
 * What pen remembers between runs: a copy of /etc, the engine's abilities, the owner of each image. Detected
 * once per backend instead of once per test home, which would take most of the time.
 */
import { spawnSync } from 'node:child_process'
import { lchownSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { PEN, type TestBackend } from './test-backend.ts'

type Seeded = Pick<TestBackend, 'who' | 'flags' | 'env'>

/** In a repository, because the box in which pen checks a commit has a view of /etc of its own. */
const COMMIT = `[ -e .git ] || git init -q .
exec "$@" git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m seed`

const seeds = new Map<string, string>()

/** Reused between runs of the tests, and updated once in each, with the image of a container. */
export function seedOf({ who, flags, env }: Seeded): string {
  const name = `home-${who.uid}-${flags.filter(flag => !flag.startsWith('-')).join('-')}`
  const known = seeds.get(name)
  if (known !== undefined) return known
  // Not below dist/, where pen is: pen refuses a project there.
  const home = join(import.meta.dir, '../../.test-homes', name)
  mkdirSync(join(home, 'project'), { recursive: true })
  for (const dir of [home, join(home, 'project')]) lchownSync(dir, who.uid, who.gid)
  const [program = '', ...rest] = [...who.become, 'sh', '-ec', COMMIT, 'sh', PEN, 'run', ...flags, '--']
  const { status, stderr } = spawnSync(program, rest, {
    cwd: join(home, 'project'),
    env: { PATH: '/usr/bin:/bin', HOME: home, ...env },
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`the seed of ${name} could not be made: ${stderr}`)
  const seed = join(home, '.pen/cache')
  seeds.set(name, seed)
  return seed
}

/** Copies it into a state directory of the user. */
export function copySeed(backend: Seeded, state: string): void {
  copyTree(seedOf(backend), join(state, 'cache'))
}

/** By hard links where possible: hundreds of new files take longer than the test itself. */
export function copyTree(from: string, to: string): void {
  if (spawnSync('cp', ['-alT', from, to]).status !== 0) spawnSync('cp', ['-aT', from, to])
}
