/**
 * Where pen itself is installed. The user's next command, or the next `Sandbox.start()`, runs these files on the host, so a sandbox
 * must never write them.
 */
import { existsSync } from 'node:fs'
import { ownProgram } from './own-program.ts'
import { dirname } from './posix-path.ts'
import { readRegularFile } from './regular-file.ts'

export interface PenPlaces {
  /** Whole trees and single files: pen's packages, links to them, or a binary that stands alone. */
  readonly all: readonly string[]
  /** Those files and directories in them that the host runs. A tree may hold others, as the examples of a clone. */
  readonly run: readonly string[]
}

/** In a package, `dist` and `package.json`; a clone has the others, which its shim builds and runs. */
const RUN = [
  'package.json',
  'package-lock.json',
  'tsconfig.json',
  'dist',
  'pen',
  'scripts',
  'src',
  'node_modules',
]
/** From `dist/pen` or `src/main.ts` to the package, and one more. */
const MOST_UP = 3
const MOST_MANIFEST = 2 ** 20

/** The pen that runs, and the one that `workspace` has among its own packages, which may be another. */
export function penPlaces(workspace: string): PenPlaces {
  const all = new Set<string>()
  const run = new Set<string>()
  const add = (place: string, isPackage: boolean): void => {
    all.add(place)
    for (const part of isPackage ? RUN.map(name => `${place}/${name}`) : [place]) run.add(part)
    // npm and others put links to its programs there.
    const modules = dirname(place)
    if (isPackage && modules.endsWith('/node_modules')) add(`${modules}/.bin/pen`, false)
  }
  for (const part of ownProgram()) {
    const home = packageOf(part)
    add(home ?? part, home !== undefined)
  }
  const installed = `${workspace}/node_modules/pen`
  if (existsSync(`${installed}/dist/pen`)) add(installed, true)
  return { all: [...all], run: [...run] }
}

/** The package that a file of pen's belongs to; undefined for one that was copied out of it. @internal */
export function packageOf(file: string): string | undefined {
  let at = file
  for (let up = 0; up < MOST_UP && at !== '/'; up++) {
    at = dirname(at)
    if (nameIn(`${at}/package.json`) === 'pen') return at
  }
  return undefined
}

/** Of a binary that was copied into a project, the manifest is the project's own: hostile. */
function nameIn(manifest: string): unknown {
  try {
    const text = readRegularFile(manifest, { maxBytes: MOST_MANIFEST })?.toString('utf8')
    return (JSON.parse(text ?? '') as { name?: unknown }).name
  } catch {
    return undefined
  }
}
