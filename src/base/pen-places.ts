/**
 * Where pen itself is installed. The next command or `Sandbox.start()` runs these files on the host, so no sandbox may
 * write them.
 */
import { existsSync } from 'node:fs'
import { mountsHere, otherPathsOf } from './mount-table.ts'
import { ownProgram } from './own-program.ts'
import { dirname } from './posix-path.ts'
import { readRegularFile } from './regular-file.ts'

export interface PenPlaces {
  /** Trees and single files: pen's packages, links to them, or a standalone binary. */
  readonly all: readonly string[]
  /** The files and directories in them that the host runs. A tree may hold others, such as the examples of a clone. */
  readonly run: readonly string[]
}

/** A package has `dist` and `package.json`. A clone has the others, which its shim builds and runs. */
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
/** Two levels from `dist/pen` or `src/main.ts` up to the package, and one to spare. */
const MOST_UP = 3
const MOST_MANIFEST = 2 ** 20
/** On npm, pen is `pen-sandbox`, and its program is in a package for each platform. */
const OF_PLATFORM = `pen-sandbox-${process.platform}-${process.arch}`
const NAMES = ['pen', 'pen-sandbox', OF_PLATFORM]

/** The running pen, and the one among the packages of `workspace`, which may be another. */
export function penPlaces(workspace: string): PenPlaces {
  const all = new Set<string>()
  const run = new Set<string>()
  const add = (place: string, isPackage: boolean): void => {
    all.add(place)
    for (const part of isPackage ? RUN.map(name => `${place}/${name}`) : [place]) run.add(part)
    // Package managers put links to programs there.
    const modules = dirname(place)
    if (isPackage && modules.endsWith('/node_modules')) add(`${modules}/.bin/pen`, false)
  }
  for (const part of ownProgram()) {
    const home = packageOf(part)
    add(home ?? part, home !== undefined)
    for (const starter of home === undefined ? [] : startersOf(home)) add(starter, true)
  }
  for (const name of NAMES) {
    const installed = `${workspace}/node_modules/${name}`
    if (existsSync(`${installed}/dist/pen`)) add(installed, true)
  }
  const mounts = mountsHere()
  const withOthers = (paths: Iterable<string>): string[] =>
    [...paths].flatMap(path => [path, ...otherPathsOf(path, mounts)])
  return { all: withOthers(all), run: withOthers(run) }
}

/** The package that starts the program of this one: npm installs the two beside each other, or one in the other. */
function startersOf(home: string): readonly string[] {
  const modules = dirname(home)
  if (!home.endsWith(`/${OF_PLATFORM}`)) return []
  const places = [`${modules}/pen`, `${modules}/pen-sandbox`, dirname(modules)]
  return places.filter(place => NAMES.includes(nameIn(`${place}/package.json`) as string))
}

/** The package of one of pen's files; undefined for a file that was copied out of it. @internal */
export function packageOf(file: string): string | undefined {
  let at = file
  for (let up = 0; up < MOST_UP && at !== '/'; up++) {
    at = dirname(at)
    if (NAMES.includes(nameIn(`${at}/package.json`) as string)) return at
  }
  return undefined
}

/** The manifest may be hostile: beside a binary that was copied into a project it is the project's. */
function nameIn(manifest: string): unknown {
  try {
    const text = readRegularFile(manifest, { maxBytes: MOST_MANIFEST })?.toString('utf8')
    return (JSON.parse(text ?? '') as { name?: unknown }).name
  } catch {
    return undefined
  }
}
