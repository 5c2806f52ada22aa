/**
 * A program that esbuild bundled into one file finds its pen binary where it may be trusted, or says how to set
 * it.
 */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { install, usePackage } from './installed-package.ts'
import { onGrounds, type Place, PROCESS } from './place.ts'

const ESBUILD = join(import.meta.dir, 'node_modules/esbuild/bin/esbuild')

usePackage()

const PROGRAM = `import { Sandbox } from 'pen'
async function main() {
  const box = await Sandbox.start({ project: process.argv[2], pen: process.argv[3] })
  console.log((await box.exec(['echo', 'from a bundle'])).stdout.trim())
  await box.stop()
}
main().catch(error => console.log(error.explain()))`

interface Ran {
  readonly code: number | null
  readonly out: string
}

function run(place: Place, file: string, args: readonly string[] = [], env: object = {}): Ran {
  const [program, ...rest] = place.argv('node', file, place.project, ...args)
  const options = {
    cwd: place.project,
    env: { ...place.env, ...env },
    encoding: 'utf8',
    timeout: 60_000,
  } as const
  const ran = spawnSync(program, rest, options)
  return { code: ran.status, out: ran.stdout + ran.stderr }
}

function bundle(dir: string, name: string, format: 'esm' | 'cjs'): string {
  const out = join(dir, name)
  const words = ['program.mjs', '--bundle', '--platform=node', `--format=${format}`, `--outfile=${out}`]
  const made = spawnSync(ESBUILD, [...words, '--log-level=error'], { cwd: dir, encoding: 'utf8' })
  expect({ code: made.status, said: made.stderr }).toEqual({ code: 0, said: '' })
  return out
}

onGrounds(
  PROCESS.slice(-1),
  'a program that esbuild bundled runs, or says how to name its pen',
  async place => {
    place.configure({ network: { offline: true } })
    const app = join(place.root, 'app')
    place.file(join(app, 'program.mjs'), PROGRAM)
    install(place, app)
    const right = { code: 0, out: 'from a bundle\n' }
    for (const [name, format] of [
      ['out/bundle.mjs', 'esm'],
      ['out/bundle.cjs', 'cjs'],
    ] as const) {
      const file = bundle(app, name, format)
      expect({ name, ...run(place, file) }).toEqual({ name, ...right })
      // Without its packages: nothing in the project, its current directory, is taken for pen.
      const packages = join(app, 'node_modules')
      const elsewhere = join(place.root, 'elsewhere')
      renameSync(packages, elsewhere)
      const binary = join(elsewhere, 'pen/dist/pen')
      install(place, place.project)
      expect(run(place, file).out).toContain('a bundle does not contain it')
      expect(run(place, file).out).toContain('PEN_PROGRAM')
      expect(run(place, file, [binary])).toEqual(right)
      expect(run(place, file, [], { PEN_PROGRAM: binary })).toEqual(right)
      const planted = join(place.project, 'node_modules/pen/dist/pen')
      expect(run(place, file, [], { PEN_PROGRAM: planted }).out).toContain('is in the project')
      expect(run(place, file, [], { PEN_PROGRAM: './pen' }).out).toContain('is not an absolute path')
      renameSync(elsewhere, packages)
    }
  },
)
