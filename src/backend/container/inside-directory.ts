/**
 * What of pen's own a container shows: a directory of this run, read-only inside, and single files over those of the image.
 * Its name says which pen made it, so that the next one takes away what a killed one left.
 */
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { isAlive } from '../../base/kernel/processes.ts'
import { dirname } from '../../base/posix-path.ts'
import { cgroupName, ownerOf, runOf } from '../../limits/cgroup-name.ts'
import { INSIDE, PEN_INSIDE } from '../../protocol/guest-paths.ts'
import type { Bind } from './arguments.ts'
import { DAEMON_PLACE } from './guest-program.ts'

/** The exec daemon connects to it once; then it is gone. */
export const DAEMON_SOCKET = `${DAEMON_PLACE}/daemon`
/** Before that, where the supervisor may not look: what the exec daemon shows of itself. */
export const SHOWN_SOCKET = `${DAEMON_PLACE}/shown`
/** An empty file that nobody may open: what denied files are covered with. */
export const NOTHING_PLACE = `${DAEMON_PLACE}/nothing`

export interface InsideDirectory {
  /** What the container sees at `INSIDE`. */
  readonly shown: string
  readonly binds: readonly Bind[]
  readonly idFile: string
  readonly pidFile: string
  /** On the host. */
  readonly socket: string
  readonly shownSocket: string
  /** Earlier runs of this sandbox whose pen was killed: what they had is gone, but for what an engine may have. */
  readonly abandoned: readonly string[]
  /** For the root helper in a container beside: it has a directory of its own, which the sandbox does not see. */
  makeHelperPlace(): Pick<InsideDirectory, 'shown' | 'binds' | 'idFile' | 'pidFile'>
  remove(): void
}

export interface InsideOptions {
  readonly stateDir: string
  readonly run: string
  /** pen itself first. Mounted at places below `DAEMON_PLACE`, which must exist for that. */
  readonly program: readonly [Bind, ...Bind[]]
  /** Files that are mounted over the image's. */
  readonly files: readonly { readonly at: string; readonly text: string }[]
}

/** An image's libraries are not to be loaded into the exec daemon. */
const PRELOAD = { at: '/etc/ld.so.preload', text: '' }

export function makeInside({ stateDir, run, program, files }: InsideOptions): InsideDirectory {
  const all = placeOf(stateDir)
  mkdirSync(all, { recursive: true, mode: 0o700 })
  const abandoned = leftDirectories(stateDir, { remove: true }).flatMap(name => runOf(name) ?? [])
  const dir = `${all}/${cgroupName(run)}`
  const inside = `${dir}/inside`
  const hostPath = (at: string): string => within(inside, at)
  // To be entered by uids of the container, to which everything above is closed all the same.
  const shown = forEverybody(() => {
    mkdirSync(dir)
    makePlaces(inside, program)
    writeFileSync(hostPath(NOTHING_PLACE), '', { mode: 0o000 })
    return [...files, PRELOAD].map(({ at, text }, i): Bind => {
      const from = `${dir}/file-${i}`
      writeFileSync(from, text)
      return { from, at, mode: 'ro' }
    })
  })
  return {
    shown: inside,
    binds: [
      ...[INSIDE, DAEMON_PLACE].map((at): Bind => ({ from: inside, at, mode: 'ro' })),
      // For commands, which know it by that name.
      { ...program[0], at: PEN_INSIDE },
      ...program,
      ...shown,
    ],
    idFile: `${dir}/id`,
    pidFile: `${dir}/pid`,
    socket: hostPath(DAEMON_SOCKET),
    shownSocket: hostPath(SHOWN_SOCKET),
    abandoned,
    makeHelperPlace: () => {
      const place = `${dir}/helper`
      forEverybody(() => makePlaces(place, program))
      return {
        shown: place,
        binds: [{ from: place, at: DAEMON_PLACE, mode: 'ro' }, ...program, ...shown.slice(-1)],
        idFile: `${dir}/helper-id`,
        pidFile: `${dir}/helper-pid`,
      }
    },
    remove: () => rmSync(dir, { recursive: true, force: true }),
  }
}

const within = (dir: string, at: string): string => `${dir}${at.slice(DAEMON_PLACE.length)}`

/** A directory with something for the program and its libraries to be mounted on. */
function makePlaces(dir: string, program: InsideOptions['program']): void {
  mkdirSync(dir)
  for (const { at } of program) {
    if (dirname(at) !== DAEMON_PLACE) mkdirSync(within(dir, dirname(at)), { recursive: true })
    writeFileSync(within(dir, at), '')
  }
}

/** What is made meanwhile is for everybody to read and for us to write, whatever the user's own umask says. */
function forEverybody<T>(make: () => T): T {
  const own = process.umask(0o022)
  try {
    return make()
  } finally {
    process.umask(own)
  }
}

const placeOf = (stateDir: string): string => `${stateDir}/containers`

/** Their names: those of runs whose pen was killed. */
export function leftDirectories(stateDir: string, { remove }: { readonly remove: boolean }): string[] {
  const all = placeOf(stateDir)
  if (!existsSync(all)) return []
  const left = readdirSync(all).filter(name => {
    const owner = ownerOf(name)
    return owner !== undefined && !isAlive(owner)
  })
  for (const name of remove ? left : []) rmSync(`${all}/${name}`, { recursive: true, force: true })
  return left
}
