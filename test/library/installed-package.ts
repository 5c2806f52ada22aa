/** pen as `npm pack` makes it and npm installs it: once for all tests of a file. */
import { afterAll, beforeAll } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Place } from './place.ts'

const ROOT = join(import.meta.dir, '../..')
const MANIFEST = '{ "type": "module" }'
let installed = ''

/**
 * For one test file. A release is packed with `prepack`, which rebuilds everything; the others use the build of
 * the tests. The package has no dependency, so npm contacts no registry.
 */
export function usePackage(how: 'released' | 'as built'): void {
  beforeAll(() => {
    const dir = mkdtempSync(join(tmpdir(), 'pen-installed-'))
    installed = dir
    chmodSync(dir, 0o755)
    npm(ROOT, 'pack', '--silent', `--ignore-scripts=${how === 'as built'}`, '--pack-destination', dir)
    const [packed = ''] = readdirSync(dir)
    writeFileSync(join(dir, 'package.json'), MANIFEST)
    npm(dir, 'install', '--offline', '--no-audit', '--no-fund', '--silent', join(dir, packed))
    rmSync(join(dir, packed))
  }, 180_000)
  afterAll(() => rmSync(installed, { recursive: true, force: true }))
}

/** The same in a directory of the place's user. */
export function install(place: Place, dir: string): void {
  const { uid, gid } = place.ground.who
  place.file(join(dir, 'package.json'), MANIFEST)
  run('/', 'cp', '-a', join(installed, 'node_modules'), dir)
  if (uid !== 0) run('/', 'chown', '-hR', `${uid}:${gid}`, join(dir, 'node_modules'))
}

const npm = (cwd: string, ...args: readonly string[]): void => run(cwd, 'npm', ...args)

function run(cwd: string, program: string, ...args: readonly string[]): void {
  const ran = spawnSync(program, args, { cwd, encoding: 'utf8', timeout: 120_000 })
  if (ran.status !== 0) throw new Error(`${program} ended with ${ran.status}: ${ran.stdout}${ran.stderr}`)
}
