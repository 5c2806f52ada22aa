/** pen as `npm pack` makes it and npm installs it: once for all tests of a process. */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Place } from './place.ts'

const ROOT = join(import.meta.dir, '../..')
const MANIFEST = '{ "type": "module" }'
let installed: string | undefined

/** Packed with `prepack`, as a release would be. It has no dependency, so npm asks nobody for anything. */
export function installedPackage(): string {
  if (installed !== undefined) return installed
  const dir = mkdtempSync(join(tmpdir(), 'pen-installed-'))
  chmodSync(dir, 0o755)
  process.once('exit', () => rmSync(dir, { recursive: true, force: true }))
  npm(ROOT, 'pack', '--silent', '--pack-destination', dir)
  const [packed = ''] = readdirSync(dir)
  writeFileSync(join(dir, 'package.json'), MANIFEST)
  npm(dir, 'install', '--offline', '--no-audit', '--no-fund', '--silent', join(dir, packed))
  rmSync(join(dir, packed))
  installed = dir
  return dir
}

/** The same in a directory of the user's whose place it is. */
export function install(place: Place, dir: string): void {
  const { uid, gid } = place.ground.who
  place.file(join(dir, 'package.json'), MANIFEST)
  run('/', 'cp', '-a', join(installedPackage(), 'node_modules'), dir)
  if (uid !== 0) run('/', 'chown', '-hR', `${uid}:${gid}`, join(dir, 'node_modules'))
}

const npm = (cwd: string, ...args: readonly string[]): void => run(cwd, 'npm', ...args)

function run(cwd: string, program: string, ...args: readonly string[]): void {
  const ran = spawnSync(program, args, { cwd, encoding: 'utf8', timeout: 120_000 })
  if (ran.status !== 0) throw new Error(`${program} ended with ${ran.status}: ${ran.stdout}${ran.stderr}`)
}
