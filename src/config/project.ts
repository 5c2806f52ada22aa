/** Which directory is the project, and where pen keeps what it knows of it. */
import { existsSync, lstatSync } from 'node:fs'
import { PenError } from '../base/error.ts'
import { dirname } from '../base/posix-path.ts'
import { sha256 } from '../base/sha256.ts'
import { type HostPath, isWithin, NEVER_GRANTED, type PathWorld } from '../policy/files/path.ts'
import { findHome, locate } from './locate.ts'

/** Stands in the state of a sandbox for as long as one is kept. */
export const SUPERVISOR_RECORD = 'supervisor.json'
/** Stands there from `pen start` until `pen stop`, whether the sandbox runs or not. */
export const STARTED = 'started.json'
/** Each of them makes a directory a project of pen's. */
const PROJECT_MARKERS = ['config.json', SUPERVISOR_RECORD, STARTED] as const

export interface Project {
  readonly id: string
  readonly world: PathWorld
  /** `~/.pen/sandboxes/<id>`: live config, audit, volumes. Never inside the project, never visible to a sandbox. */
  readonly stateDir: HostPath
  /** The directory in which the command was given. */
  readonly cwd: HostPath
}

/** A name that every engine accepts: the directory's own, made safe, and a hash of its whole canonical path. */
export function sandboxId(workspace: string): string {
  const name = plain(workspace.slice(workspace.lastIndexOf('/') + 1).toLowerCase()).slice(0, 32)
  const hash = sha256(workspace).slice(0, 16)
  return `${name === '' ? 'project' : name}-${hash}`
}

/** Most names are: they are asked first, because the first replacement costs a start a tenth of a millisecond. */
const plain = (name: string): string =>
  /[^a-z0-9]/.test(name) ? name.replace(/[^a-z0-9]+/g, '-').replace(/^-+|-+$/g, '') : name

/**
 * The nearest directory at or above the current one that pen knows from its own state, by a config or by a sandbox that was
 * started; else the current one. Nothing in the tree itself is asked: a file planted by an agent must not move or widen the workspace.
 */
export function findProject(directory?: string): Project {
  const home = findHome()
  // Some keep it elsewhere, behind a link: what counts is where it is, because no sandbox may see it.
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
  return describe(workspace, cwd, home, state)
}

/** The current directory itself, whatever pen knows above it: for the command that makes it a project. */
export function projectHere(directory?: string): Project {
  const home = findHome()
  const cwd = currentDirectory(directory)
  return describe(cwd, cwd, home, locate(`${home}/.pen`).real as HostPath)
}

function describe(workspace: HostPath, cwd: HostPath, home: HostPath, state: HostPath): Project {
  const id = sandboxId(workspace)
  checkState(state)
  checkWorkspace(workspace, home, [state, locate(`${state}/sandboxes/${id}`).real as HostPath])
  return {
    id,
    cwd,
    stateDir: `${state}/sandboxes/${id}` as HostPath,
    world: { workspace, home, state, locate },
  }
}

/** What pen shows to a sandbox as `/etc`, and what it takes for the user's word, stands there. */
function checkState(state: HostPath): void {
  const stats = lstatSync(state, { throwIfNoEntry: false })
  if (stats === undefined || (stats.mode & 0o002) === 0) return
  throw new PenError('STATE', {
    what: 'every user of this machine may write where pen keeps its state',
    at: state,
    hint: `look whether it is as you left it, then: chmod 700 ${state}`,
  })
}

function currentDirectory(directory: string | undefined): HostPath {
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

/** The runtime shows what is no text as one character; by that name the directory is not found. */
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
