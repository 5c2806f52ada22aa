/**
 * pen as `npm pack` makes it and npm installs it. Packing rebuilds everything and compresses the program, so it is
 * done once for each state of the sources, and kept for the next run.
 */
import { beforeAll } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Place } from './place.ts'

const ROOT = join(import.meta.dir, '../..')
const KEPT = join(ROOT, '.test-homes')
const SOURCES = [
  'src',
  'scripts',
  'image',
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'tsconfig.library.json',
] as const
const MANIFEST = '{ "type": "module" }'
let installed = ''

/** For one test file. The package has no dependency, so npm contacts no registry. */
export function usePackage(): void {
  beforeAll(() => {
    mkdirSync(KEPT, { recursive: true, mode: 0o755 })
    installed = join(KEPT, `package-${keyOfSources()}`)
    run(ROOT, 'flock', join(KEPT, 'package.lock'), 'sh', '-ec', MAKE, 'sh', installed, MANIFEST)
  }, 180_000)
}

/** Makes the directory $1, unless another process has made it. */
const MAKE = `[ ! -e "$1" ] || exit 0
rm -rf "\${1%-*}"-*
umask 022
mkdir "$1.tmp"
npm pack --silent --pack-destination "$1.tmp"
cd "$1.tmp"
printf %s "$2" > package.json
npm install --offline --no-audit --no-fund --silent ./*.tgz
rm ./*.tgz
mv "$1.tmp" "$1"`

function keyOfSources(): string {
  const hash = createHash('sha256')
  for (const file of SOURCES.flatMap(name => filesBelow(name)))
    hash
      .update(`${file}\0`)
      .update(readFileSync(join(ROOT, file)))
      .update('\0')
  return hash.digest('hex').slice(0, 12)
}

function filesBelow(name: string): string[] {
  if (!statSync(join(ROOT, name)).isDirectory()) return [name]
  return readdirSync(join(ROOT, name))
    .sort()
    .flatMap(entry => filesBelow(`${name}/${entry}`))
}

/** The same in a directory of the place's user. */
export function install(place: Place, dir: string): void {
  const { uid, gid } = place.ground.who
  place.file(join(dir, 'package.json'), MANIFEST)
  run('/', 'cp', '-a', join(installed, 'node_modules'), dir)
  if (uid !== 0) run('/', 'chown', '-hR', `${uid}:${gid}`, join(dir, 'node_modules'))
}

function run(cwd: string, program: string, ...args: readonly string[]): void {
  const ran = spawnSync(program, args, { cwd, encoding: 'utf8', timeout: 170_000 })
  if (ran.status !== 0) throw new Error(`${program} ended with ${ran.status}: ${ran.stdout}${ran.stderr}`)
}
