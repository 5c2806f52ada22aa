/** Installs and removes hooks, and remembers them in `~/.pen/hooks.json`, so that each file can be restored byte for byte. */
import { rmSync } from 'node:fs'
import { removeLeftovers, writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { ownProgram } from '../base/own-program.ts'
import { quoteWord } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { findHome } from '../config/locate.ts'
import { withLock } from '../config/lock.ts'
import { makeStateDirectory } from '../config/project.ts'
import { HOOKED_AGENTS, type HookedName, type HookFile, type Scope } from './agents.ts'
import { fullPath, type Place, readPlace, removePlace, writePlace } from './hook-file.ts'
import { execWords } from './judge-call.ts'
import { insertEntry, refuseMarked, removeEntry } from './settings-text.ts'

export interface Change {
  readonly place: Place
  readonly before: string | undefined
  readonly after: string
  readonly inserted: string
  readonly file: HookFile
  /** Hooks of others for the same event. */
  readonly others: number
}

/** One file with a hook, as `hooks.json` has it. */
export interface HookRecord extends Place {
  readonly agent: HookedName
  readonly scope: Scope
  readonly inserted: string
  readonly event: string | null
  /** The content of a file that pen made, without the hook. Null when the file was there. */
  readonly empty: string | null
  /** The first directory that pen made for it. */
  readonly made: string | null
}

/** Agents run the command when a hook fails, except with exit code 2. In a sandbox there is nothing to do. */
export function hookLine(agent: HookedName, project: string | undefined): string {
  const call = [...ownProgram(), '__hook', agent, ...(project === undefined ? [] : [project])]
  const failed =
    "echo 'pen did not answer, so nothing was run. The user can run: pen hook --remove' >&2; exit 2;"
  return `[ -e /run/pen ] || ${call.map(quoteWord).join(' ')} || { ${failed} }`
}

/** What `pen hook AGENT` would write. Nothing is written yet. */
export function planHook(agent: HookedName, scope: Scope, workspace: string): readonly Change[] {
  const root = scope === 'user' ? findHome() : workspace
  const line = hookLine(agent, scope === 'user' ? undefined : workspace)
  return HOOKED_AGENTS[agent].files.map((file: HookFile): Change => {
    const place = { root, path: file.path[scope], followsLinks: scope === 'user' }
    const there = readPlace(place)
    if (there !== undefined) refuseMarked(there, fullPath(place))
    const before = there?.toString('utf8')
    if (file.kind === 'own') {
      if (there !== undefined)
        throw new PenError('STATE', {
          what: `${fullPath(place)} exists, and is not pen's`,
          hint: 'move it away',
        })
      const text = file.text(execWords(ownProgram(), workspace), line)
      return { place, before, after: text, inserted: text, file, others: 0 }
    }
    const { event, comments, entry, empty } = file
    const bytes = there ?? Buffer.from(empty)
    const { text, inserted, others } = insertEntry(bytes, fullPath(place), {
      event,
      comments,
      entry: entry(line),
    })
    return { place, before, after: text, inserted, file, others }
  })
}

export async function installHook(
  agent: HookedName,
  scope: Scope,
  changes: readonly Change[],
): Promise<void> {
  await editRecords(records => {
    const now = [...records]
    for (const { place, before, after, inserted, file } of changes) {
      const event = file.kind === 'settings' ? file.event : null
      const empty = before !== undefined ? null : file.kind === 'settings' ? file.empty : ''
      const record = { ...place, agent, scope, inserted, event, empty }
      if (readPlace(place)?.toString('utf8') !== before)
        throw new PenError('STATE', {
          what: `${fullPath(place)} changed in the meantime`,
          hint: 'run pen hook again',
        })
      const at = now.push({ ...record, made: null }) - 1
      // First the record: after a crash pen still knows what to remove.
      writeRecords(now)
      const made = writePlace(place, after)
      now[at] = { ...record, made: made ?? null }
    }
    return now
  })
}

/** Removes the hooks that `isMeant` chooses. A file that only the user can repair stays, with its record. */
export async function removeHooks(
  isMeant: (record: HookRecord) => boolean,
): Promise<{ readonly removed: readonly HookRecord[]; readonly left: readonly PenError[] }> {
  const removed: HookRecord[] = []
  const left: PenError[] = []
  if (!readRecords().some(isMeant)) return { removed, left }
  // The newest first: the oldest made the directory that others are in.
  await editRecords(records =>
    records
      .toReversed()
      .filter(record => {
        if (!isMeant(record)) return true
        try {
          restore(record)
          removed.push(record)
          return false
        } catch (error) {
          if (!(error instanceof PenError)) throw error
          left.push(error)
          return true
        }
      })
      .toReversed(),
  )
  return { removed, left }
}

function restore(record: HookRecord): void {
  const { inserted, event, empty, made } = record
  const text = readPlace(record)?.toString('utf8')
  if (text === undefined) return
  if (event === null && text !== inserted)
    throw new PenError('STATE', {
      what: 'the file was edited since',
      at: fullPath(record),
      hint: 'remove it yourself',
    })
  const restored = event === null ? '' : removeEntry(text, fullPath(record), inserted, event)
  if (restored === undefined) return
  if (restored === empty) removePlace(record, made ?? undefined)
  else writePlace(record, restored)
}

const recordsFile = (): string => `${findHome()}/.pen/hooks.json`

export function readRecords(): readonly HookRecord[] {
  const bytes = readRegularFile(recordsFile(), { maxBytes: 16_777_216, owner: 'self-or-root' })
  return bytes === undefined
    ? []
    : (JSON.parse(bytes.toString('utf8')) as { readonly hooks: readonly HookRecord[] }).hooks
}

const writeRecords = (hooks: readonly HookRecord[]): void =>
  void writeFileAtomically(recordsFile(), `${JSON.stringify({ version: 1, hooks }, null, 2)}\n`)

async function editRecords(edit: (records: readonly HookRecord[]) => readonly HookRecord[]): Promise<void> {
  const file = recordsFile()
  makeStateDirectory(`${findHome()}/.pen`)
  await withLock(file, () => {
    removeLeftovers(file)
    const hooks = edit(readRecords())
    if (hooks.length > 0) writeRecords(hooks)
    else rmSync(file, { force: true })
  })
}
