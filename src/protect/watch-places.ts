/** Guards protected and denied places while a sandbox runs. New or replaced files are moved away or mounted again, and reported. */
import type { AuditEventInput } from '../audit/event.ts'
import type { Running } from '../backend/backend.ts'
import { printable, shellWord } from '../base/printable.ts'
import type { Loaded } from '../config/load.ts'
import { hostServices } from '../survey/host-services.ts'
import { ListingCache } from '../survey/listing-cache.ts'
import type { Watched } from '../survey/places.ts'
import type { Surveyed } from '../survey/survey.ts'
import { DeniedPlaces } from './denied-places.ts'
import { type Back, type Lost, type Moved, Quarantine, type Stuck, type Unkept } from './quarantine.ts'
import { type HoldEvent, Remount } from './remount.ts'
import { sweepKilledRuns, WatchRecord } from './watch-record.ts'

export interface PlaceWatch {
  /** The last look, after every process of the sandbox is gone, so nothing can race it. */
  finish(): Promise<void>
}

export interface WatchOptions {
  readonly loaded: Loaded
  readonly facts: Surveyed
  readonly running: Running
  readonly runId: string
  readonly tell: (line: string) => void
  readonly record: (event: AuditEventInput) => void
}

/** Shorter runs need no watch. */
const START_AFTER_MS = 20

export function watchPlaces({ loaded, facts, running, runId, tell, record }: WatchOptions): PlaceWatch {
  const { repository } = facts
  const { project } = loaded
  const lost = new Map<string, string>()
  const held = new Tally()
  const unkept = new Map<Unkept['how'], string[]>()
  let moved = 0
  const dir = `${project.stateDir}/quarantine/${runId}`
  // A sandbox without mounts writes the host's repository, and a new one stays as it is.
  const isRecorded = ({ rule }: Watched): boolean => rule.kind !== 'git-dir' || running.sharesHost !== true
  const recorded = repository.watch.filter(isRecorded)
  const watchRecord = new WatchRecord(project.stateDir, runId, recorded, running.initPid())
  const quarantine = new Quarantine({
    watch: repository.watch,
    held: repository.protect,
    dir,
    tell: event => {
      if (event.kind === 'lost') lost.set(event.path, inWords(event))
      else if (event.kind === 'unkept') unkept.set(event.how, [...(unkept.get(event.how) ?? []), event.path])
      // Unseen places are always reported, even when there are many other lines.
      else if (event.kind === 'unseen' || moved++ < MAX_LINES) tell(inWords(event))
      if (event.kind === 'moved')
        record({
          kind: 'quarantine',
          path: event.path,
          reason: event.what,
          to: event.to,
          restored: event.restored,
        })
    },
  })
  quarantine.start()

  const onEvent = (event: HoldEvent): void => {
    held.add(event)
    const reason = typeof event.result === 'string' ? undefined : event.result.failed
    record({ kind: 'place-held', path: event.path, how: event.how, held: reason === undefined, reason })
    if (event.how !== 'protect' || reason !== undefined) return
    lost.delete(event.path)
    quarantine.hold(event.path)
  }
  const roots = loaded.policy.files.read.map(({ rule }) => rule.path)
  const attempts = new Set<string>()
  let flooded = false
  const onFlood = (why: string): void => {
    if (!flooded) tell(`denied: ${why}; the sandbox was ended`)
    flooded = true
    running.kill()
  }
  const again =
    running.mounts === undefined
      ? undefined
      : new Remount({
          mounts: running.mounts,
          denied: deniedPlaces(loaded, repository.git?.path),
          services: () => hostServices(roots, roots).paths,
          covered: facts.denied.length,
          held: repository.protect.map(({ path }) => path),
          onEvent,
          onAttempt: path => attempts.add(path),
          onFlood,
        })
  const begin = setTimeout(() => again?.start(), START_AFTER_MS)

  return {
    finish: async () => {
      clearTimeout(begin)
      await again?.stop()
      await quarantine.finish()
      watchRecord.remove()
      if (moved > MAX_LINES) tell(andMore(moved - MAX_LINES, 'things at protected places'))
      for (const [how, paths] of unkept) tell(unkeptInWords(how, paths, dir))
      // Places in `held` or `lost` were replaced after all, by a program on the host.
      for (const path of attempts) if (!held.has(path) && !lost.has(path)) tell(couldNotReplace(path))
      for (const line of [...held.lines(), ...lost.values()]) tell(line)
    },
  }
}

/** Before the host is surveyed: what a killed run left at a protected place would count as the user's. */
export const sweepAfterKill = (stateDir: string, tell: (line: string) => void): Promise<string | undefined> =>
  sweepKilledRuns(stateDir, event =>
    tell(event.kind === 'unkept' ? unkeptInWords(event.how, [event.path], event.path) : inWords(event)),
  )

function deniedPlaces({ policy, project }: Loaded, git: string | undefined): DeniedPlaces {
  const roots = policy.files.read.map(({ rule }) => rule.path as string)
  const cache = new ListingCache({ file: `${project.stateDir}/listings.json`, save: () => {} })
  return new DeniedPlaces(policy, roots, (dir, component) => cache.matching(dir, component), git)
}

/** One line per place, however often it was replaced. */
class Tally {
  readonly #counts = new Map<string, { event: HoldEvent; times: number }>()

  add(event: HoldEvent): void {
    const key = `${event.how} ${event.path}`
    this.#counts.set(key, { event, times: (this.#counts.get(key)?.times ?? 0) + 1 })
  }

  has(path: string): boolean {
    return this.#counts.has(`protect ${path}`)
  }

  lines(): string[] {
    const all = [...this.#counts.values()]
    const more = all.length - MAX_LINES
    const lines = all.slice(0, MAX_LINES).map(({ event, times }) => heldInWords(event, times))
    return more <= 0 ? lines : [...lines, andMore(more, 'such places')]
  }
}

const MAX_LINES = 20
const andMore = (count: number, what: string): string =>
  `… and ${count} more ${what}: "pen logs --all" has them`

function heldInWords({ how, path, result }: HoldEvent, times: number): string {
  const often = times === 1 ? '' : ` (${times} times)`
  const where = printable(path, 1024)
  if (how === 'cover')
    return result === 'held'
      ? `denied: ${where} appeared or was replaced while the sandbox ran, and was covered${often}`
      : `denied: ${where} appeared or was replaced while the sandbox ran and could not be covered (${printable(result.failed, 200)}): the sandbox could read it`
  return result === 'held'
    ? `protected: ${where} was replaced on the host while the sandbox ran, and is held again${often}; for a moment the sandbox could write it`
    : `protected: ${where} was replaced on the host while the sandbox ran and could not be held again (${printable(result.failed, 200)}): look at it before you trust it`
}

function inWords(event: Moved | Lost | Stuck | Back): string {
  const path = printable(event.path, 1024)
  switch (event.kind) {
    case 'moved':
      return `protected: ${path} appeared (${event.what}) and was ${event.to === null ? 'removed' : `moved to ${printable(event.to, 1024)}`}${event.restored ? '; what stood there before is back' : ''}`
    case 'lost':
      return `protected: ${path} was ${event.gone ? 'removed' : 'replaced'} on the host while the sandbox ran: until it is restarted, it is held by watching only`
    case 'back':
      return `protected: the link ${path} was removed, and was put back`
    case 'unseen':
      return `protected: pen could not look at all of ${path} (${printable(event.why, 200)}): look at it before you trust it`
    case 'stuck':
      return `protected: ${path} could not be moved away (${printable(event.why, 200)}): look at it before you trust it`
  }
}

const couldNotReplace = (path: string): string =>
  `protected: a program in the sandbox tried to change ${printable(path, 1024)} and could not ("Device or resource busy"): change it on the host`

function unkeptInWords(how: Unkept['how'], paths: readonly string[], dir: string): string {
  const [first = '', ...more] = paths
  const what =
    more.length === 0 ? printable(first, 1024) : `${paths.length} things in ${printable(dir, 1024)}`
  const remove = shellWord(more.length === 0 ? first : dir)
  switch (how) {
    case 'partly':
      return `protected: ${what}: only a part was kept there, and the rest was removed: it was too much to keep`
    case 'removed':
      return `protected: ${what}: removed again, because it was too much to keep`
    case 'left':
      return `protected: ${what}: too much to remove in time, and left there${remove === undefined ? '' : `: rm -rf ${remove}`}`
  }
}
