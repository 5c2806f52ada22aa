/** Finds the project directory, and pen's state for it. */
import { existsSync, lstatSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { errnoText, PenError } from '../base/error.ts'
import { dirname } from '../base/posix-path.ts'
import { printable } from '../base/printable.ts'
import { sha256 } from '../base/sha256.ts'
import { type HostPath, isWithin, NEVER_GRANTED, type PathWorld } from '../policy/files/path.ts'
import { findHome, locate } from './locate.ts'

/** In the sandbox's state directory while a supervisor runs. */
export const SUPERVISOR_RECORD = 'supervisor.json'
/** In the state directory from `pen start` until `pen stop`, whether or not the sandbox runs. */
export const STARTED = 'started.json'
/** In the project's state directory: a directory for each named sandbox. */
const NAMES = 'names'
/** Any of these makes a directory a project. */
const PROJECT_MARKERS = ['config.json', SUPERVISOR_RECORD, STARTED, NAMES] as const
/** A part of paths, refs, container names and command lines. */
const NAME = /^[a-z0-9][a-z0-9-]{0,31}$/

export interface Project {
  /** The id of the sandbox. */
  readonly id: string
  /** Undefined for the sandbox without a name. */
  readonly name: string | undefined
  readonly world: PathWorld
  /** The sandbox's own state: audit, volumes, grants, git directory. Never inside the project, never visible to a sandbox. */
  readonly stateDir: HostPath
  /**
   * What all sandboxes of the project have in common, in `~/.pen/sandboxes/<id>`: live config, secrets, images, the records of watched
   * places. Without a name, it is the sandbox's own state too.
   */
  readonly shared: { readonly id: string; readonly stateDir: HostPath }
  /** The directory in which the command runs. */
  readonly cwd: HostPath
}

/** A name that every engine accepts: the directory's name in safe characters, and a hash of its canonical path. */
export function sandboxId(workspace: string): string {
  const name = plain(workspace.slice(workspace.lastIndexOf('/') + 1).toLowerCase()).slice(0, 32)
  const hash = sha256(workspace).slice(0, 16)
  return `${name === '' ? 'project' : name}-${hash}`
}

/** Tests first, because most names are plain and the first replacement costs a start 0.1 ms. */
const plain = (name: string): string =>
  /[^a-z0-9]/.test(name) ? name.replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '') : name

/**
 * The nearest directory, from the current one upwards, that pen's own state knows by a config or a started sandbox; else the
 * current one. Files in the tree do not count: a file planted by an agent must not change the workspace.
 */
export function findProject(directory?: string, name?: string): Project {
  const home = findHome()
  // ~/.pen may be a link. Its real path counts, because no sandbox may see it.
  const state = locate(`${home}/.pen`).real as HostPath
  const cwd = currentDirectory(directory)
  let workspace = cwd
  for (let at: string = cwd; at !== '/' && at !== home; at = dirname(at)) {
    const known = `${state}/sandboxes/${sandboxId(at)}`
    if (PROJECT_MARKERS.some(mark => existsSync(`${known}/${mark}`))) {
      workspace = at as HostPath
      break
    }
  }
  const project = describe(workspace, cwd, home, state)
  return name === undefined ? project : { ...project, ...named(project.shared, name) }
}

export const isName = (name: string): boolean => NAME.test(name)

export function checkName(name: string): void {
  if (isName(name)) return
  throw new PenError('USAGE', {
    what: `"${printable(name, 64)}" cannot be the name of a sandbox`,
    at: '--name',
    hint: 'use up to 32 of a-z, 0-9 and -, beginning with a letter or digit',
  })
}

/** The sandbox of this name. It may not exist yet. */
export function named(
  { id, stateDir }: Project['shared'],
  name: string,
): Pick<Project, 'id' | 'name' | 'stateDir'> {
  checkName(name)
  const own = `${id.slice(0, -17)}-${name}-${sha256(`${id} ${name}`).slice(0, 16)}`
  return { id: own, name, stateDir: `${stateDir}/${NAMES}/${name}` as HostPath }
}

/** The names of a project's sandboxes, from its own state directory. */
export function namesOf(sharedDir: string): string[] {
  const directory = `${sharedDir}/${NAMES}`
  return existsSync(directory)
    ? readdirSync(directory)
        .filter(name => NAME.test(name))
        .sort()
    : []
}

/** The project's own state directory, from that of one of its sandboxes. */
export const sharedOf = (stateDir: string): string =>
  dirname(stateDir).endsWith(`/${NAMES}`) ? dirname(dirname(stateDir)) : stateDir

/** The state directories of all sandboxes of the project. */
export const stateDirectories = ({ shared }: Project): readonly string[] => [
  shared.stateDir,
  ...namesOf(shared.stateDir).map(name => named(shared, name).stateDir),
]

/** The current directory itself, for the command that makes it a project. */
export function projectHere(directory?: string): Project {
  const home = findHome()
  const cwd = currentDirectory(directory)
  return describe(cwd, cwd, home, locate(`${home}/.pen`).real as HostPath)
}

function describe(workspace: HostPath, cwd: HostPath, home: HostPath, state: HostPath): Project {
  const id = sandboxId(workspace)
  checkState(state)
  checkWorkspace(workspace, home, [state, locate(`${state}/sandboxes/${id}`).real as HostPath])
  const shared = { id, stateDir: `${state}/sandboxes/${id}` as HostPath }
  return {
    ...shared,
    name: undefined,
    cwd,
    shared,
    world: { workspace, home, state, locate },
  }
}

/** pen trusts this directory: it holds the live config, and files that a sandbox sees as `/etc`. */
function checkState(state: HostPath): void {
  const stats = lstatSync(state, { throwIfNoEntry: false })
  if (stats === undefined || (stats.mode & 0o002) === 0) return
  throw new PenError('STATE', {
    what: 'every user of this machine can write to pen’s state directory',
    at: state,
    hint: `check its contents, then: chmod 700 ${state}`,
  })
}

export function currentDirectory(directory?: string): HostPath {
  const gone = (cause: unknown) =>
    new PenError('PATH_REFUSED', {
      what: 'the current directory no longer exists',
      hint: 'cd into a project directory',
      cause,
    })
  try {
    refuseOddName(directory ?? process.cwd())
    const found = locate(directory ?? process.cwd())
    if (found.kind !== 'directory') throw gone(undefined)
    return found.real as HostPath
  } catch (error) {
    throw error instanceof PenError ? error : gone(error)
  }
}

/** The runtime replaces invalid UTF-8 with U+FFFD, and no directory has that name. */
function refuseOddName(directory: string): void {
  if (!directory.includes('\ufffd') || lstatSync(directory, { throwIfNoEntry: false }) !== undefined) return
  throw new PenError('PATH_REFUSED', {
    what: 'the name of the current directory, or of one above it, is not valid UTF-8',
    at: directory,
    hint: 'rename it, or work in another directory',
  })
}

function checkWorkspace(workspace: HostPath, home: HostPath, states: readonly HostPath[]): void {
  const why =
    workspace === home
      ? 'this is your home directory'
      : isWithin(home, workspace)
        ? 'this directory holds your home'
        : states.some(state => isWithin(workspace, state) || isWithin(state, workspace))
          ? "it holds pen's own state"
          : NEVER_GRANTED.includes(workspace) ||
              ['/proc', '/sys', '/dev'].some(live => isWithin(workspace, live))
            ? 'this is a directory of the system'
            : undefined
  if (why !== undefined)
    throw new PenError('PATH_REFUSED', {
      what: `${workspace} cannot be a project: ${why}`,
      hint: 'cd into the directory of one project',
    })
}

/** For lists: a state directory does not say where its project is. */
export function rememberWorkspace({ stateDir, world }: Project): void {
  makeStateDirectory(stateDir)
  writeFileSync(`${stateDir}/workspace`, `${world.workspace}\n`, { mode: 0o600 })
}

/** A project without a config has no state directory yet. */
export function makeStateDirectory(dir: string): void {
  try {
    mkdirSync(dir, { recursive: true, mode: 0o700 })
  } catch (error) {
    throw new PenError('STATE', {
      what: `could not create the state directory (${errnoText(error)})`,
      at: dir,
      hint: 'check that you can write there and that the disk is not full',
      cause: error,
    })
  }
}
