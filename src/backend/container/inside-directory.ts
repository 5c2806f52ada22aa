/**
 * pen's own files in a container: a directory of this run, read-only inside, and single files over those of the image.
 * The directory's name says which pen made it, so the next pen removes what a killed one left.
 */
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname } from '../../base/posix-path.ts'
import { cgroupName, namesOfDead, runOf } from '../../limits/cgroup-name.ts'
import { INSIDE, PEN_INSIDE } from '../../protocol/guest-paths.ts'
import type { Bind } from './arguments.ts'
import { DAEMON_DIRECTORY } from './guest-program.ts'

/** The exec daemon connects to it once. Then it is removed. */
export const DAEMON_SOCKET = `${DAEMON_DIRECTORY}/daemon`
/**
 * Used before that, when the supervisor may not inspect root's processes. The exec daemon sends its namespaces here.
 */
export const SHOWN_SOCKET = `${DAEMON_DIRECTORY}/shown`
/** An empty file without permissions. Denied files are covered with it. */
export const CONTAINER_EMPTY_FILE = `${DAEMON_DIRECTORY}/nothing`

export interface InsideDirectory {
  /** The host's directory that the container sees at `INSIDE`. */
  readonly shown: string
  readonly binds: readonly Bind[]
  readonly idFile: string
  readonly pidFile: string
  /** The path on the host. */
  readonly socket: string
  readonly shownSocket: string
  /**
   * Earlier runs of this sandbox whose pen was killed. Their files are removed, but the engine may still have their
   * containers.
   */
  readonly abandoned: readonly string[]
  /** A directory for the root helper, which runs in another container. The sandbox does not see it. */
  makeHelperDirectory(): Pick<InsideDirectory, 'shown' | 'binds' | 'idFile' | 'pidFile'>
  remove(): void
}

export interface InsideOptions {
  readonly stateDir: string
  readonly run: string
  /** pen's binary is the first. They are mounted below `DAEMON_DIRECTORY`, where the mount points must exist. */
  readonly program: readonly [Bind, ...Bind[]]
  /** Files to mount over the image's. */
  readonly files: readonly { readonly at: string; readonly text: string }[]
  readonly points: readonly EmptyPoint[]
}

/** A mount point for pen's own mounts. */
export interface EmptyPoint extends Pick<Bind, 'at' | 'mode'> {
  readonly kind: 'file' | 'directory'
}

/** Keeps an image's libraries from being loaded into the exec daemon. */
const PRELOAD = { at: '/etc/ld.so.preload', text: '' }

export function makeInside({ stateDir, run, program, files, points }: InsideOptions): InsideDirectory {
  const all = containersDirectory(stateDir)
  mkdirSync(all, { recursive: true, mode: 0o700 })
  const abandoned = orphanDirectories(stateDir, { remove: true }).flatMap(name => runOf(name) ?? [])
  const dir = `${all}/${cgroupName(run)}`
  const inside = `${dir}/inside`
  const hostPath = (at: string): string => within(inside, at)
  // Uids of the container may enter these. The directories above are closed to them.
  const shown = withPublicModes(() => {
    mkdirSync(dir)
    makeMountPoints(inside, program)
    writeFileSync(hostPath(CONTAINER_EMPTY_FILE), '', { mode: 0o000 })
    mkdirSync(`${dir}/empty`)
    return [...files, PRELOAD].map(({ at, text }, i): Bind => {
      const from = `${dir}/file-${i}`
      writeFileSync(from, text)
      return { from, at, mode: 'ro' }
    })
  })
  return {
    shown: inside,
    binds: [
      ...[INSIDE, DAEMON_DIRECTORY].map((at): Bind => ({ from: inside, at, mode: 'ro' })),
      // The path at which commands find pen.
      { ...program[0], at: PEN_INSIDE },
      ...program,
      ...shown,
      ...points.map(({ at, mode, kind }): Bind => {
        const from = kind === 'file' ? hostPath(CONTAINER_EMPTY_FILE) : `${dir}/empty`
        return { from, at, mode }
      }),
    ],
    idFile: `${dir}/id`,
    pidFile: `${dir}/pid`,
    socket: hostPath(DAEMON_SOCKET),
    shownSocket: hostPath(SHOWN_SOCKET),
    abandoned,
    makeHelperDirectory: () => {
      const place = `${dir}/helper`
      withPublicModes(() => makeMountPoints(place, program))
      return {
        shown: place,
        binds: [{ from: place, at: DAEMON_DIRECTORY, mode: 'ro' }, ...program, ...shown.slice(-1)],
        idFile: `${dir}/helper-id`,
        pidFile: `${dir}/helper-pid`,
      }
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

const within = (dir: string, at: string): string => `${dir}${at.slice(DAEMON_DIRECTORY.length)}`

/** Makes a directory with mount points for the program and its libraries. */
function makeMountPoints(dir: string, program: InsideOptions['program']): void {
  mkdirSync(dir)
  for (const { at } of program) {
    if (dirname(at) !== DAEMON_DIRECTORY) mkdirSync(within(dir, dirname(at)), { recursive: true })
    writeFileSync(within(dir, at), '')
  }
}

/** Makes files that every user may read and only pen may write, regardless of the user's umask. */
function withPublicModes<T>(make: () => T): T {
  const own = process.umask(0o022)
  try {
    return make()
  } finally {
    process.umask(own)
  }
}

const containersDirectory = (stateDir: string): string => `${stateDir}/containers`

/** The names of directories whose pen was killed. */
export function orphanDirectories(stateDir: string, { remove }: { readonly remove: boolean }): string[] {
  const all = containersDirectory(stateDir)
  if (!existsSync(all)) return []
  const left = namesOfDead(all)
  for (const name of remove ? left : []) rmSync(`${all}/${name}`, { recursive: true, force: true })
  return left
}
