/**
 * Removes everything that this user's pen stored on the machine. Projects stay untouched, with their `.pen/`. Of the state, only names
 * that pen itself creates are removed; other files stay and are reported.
 */
import { lstatSync, unlinkSync } from 'node:fs'
import { PenError } from '../base/error.ts'
import { findHome } from '../config/locate.ts'
import { DOCUMENTS } from '../config/pen-directory.ts'
import { fullPath } from '../hooks/hook-file.ts'
import { readRecords, removeHooks } from '../hooks/install.ts'
import { hasInclude, removeInclude, userConfig } from '../ssh/include-line.ts'
import { forgetSandbox, refuseWhileRunning, removeIfEmpty, removeState } from './forget.ts'
import { collectLeftovers, type Leftover } from './leftovers.ts'
import { listSandboxes, namesIn, refuseStateOfOthers, stateOfUser } from './list.ts'

interface Removed {
  readonly kind: Exclude<Leftover['kind'], 'record'> | 'sandbox' | 'directory' | 'ssh-include' | 'hook'
  readonly name: string
}

export interface Uninstalled {
  readonly removed: readonly Removed[]
  /** What could not be removed, and why. */
  readonly left: readonly PenError[]
}

interface Options {
  readonly remove: boolean
  /** Keeps the live config of every project, for a later installation. */
  readonly keepConfig: boolean
  /** Also changes of `--review` that were never accepted. */
  readonly discard: boolean
}

export async function uninstall({ remove, keepConfig, discard }: Options): Promise<Uninstalled> {
  refuseStateOfOthers()
  // Named sandboxes first: they use the config of their project.
  const known = (await listSandboxes({ repair: remove })).toSorted(
    (a, b) => Number(a.name === undefined) - Number(b.name === undefined),
  )
  for (const { stateDir, record } of known) refuseWhileRunning(stateDir, record?.pid)
  const state = stateOfUser()
  const wasThere = lstatSync(state, { throwIfNoEntry: false }) !== undefined
  // First: without pen, the hooks of agents refuse every command.
  const hooks = remove ? await removeHooks(() => true) : { removed: readRecords(), left: [] }
  const left: PenError[] = [...hooks.left]
  const orLeft = async (work: () => Promise<void> | void): Promise<void> => {
    try {
      await work()
    } catch (error) {
      if (!(error instanceof PenError)) throw error
      left.push(error)
    }
  }
  const place = { home: findHome(), state }
  const included = hasInclude(place)
  if (remove && included) await orLeft(async () => void (await removeInclude(place)))
  const keep = keepConfig ? DOCUMENTS : []
  if (remove) for (const { stateDir } of known) await orLeft(() => forgetSandbox(stateDir, { keep, discard }))
  // Before the cache is removed: it knows which engines were used.
  const leftovers = await collectLeftovers({ remove, everyImage: true })
  const after = remove ? await collectLeftovers({ remove: false, everyImage: true }) : []
  left.push(...after.map(stillUsed))
  if (remove) for (const part of ['cache', 'ssh']) await orLeft(() => removeState(`${state}/${part}`))
  let isGone = !remove
  if (remove)
    await orLeft(() => {
      isGone = isRemoved(state)
    })
  if (!isGone && !keepConfig && !left.some(({ at }) => String(at).startsWith(`${state}/`)))
    left.push(somethingElse(state))
  const isLeft = (stateDir: string): boolean => left.some(({ at }) => `${at}/`.startsWith(`${stateDir}/`))
  return {
    removed: [
      ...hooks.removed.map(record => ({ kind: 'hook', name: fullPath(record) }) as const),
      ...(included && !(remove && hasInclude(place))
        ? [{ kind: 'ssh-include', name: userConfig(place) } as const]
        : []),
      ...known.flatMap(({ id, stateDir }) =>
        isLeft(stateDir) ? [] : [{ kind: 'sandbox', name: id } as const],
      ),
      ...leftovers.flatMap(({ kind, name }) => (kind === 'record' ? [] : [{ kind, name }])),
      ...(wasThere && isGone && !keepConfig ? [{ kind: 'directory', name: state } as const] : []),
    ],
    left,
  }
}

/** Removes only empty directories: a sandbox that starts at this moment keeps its state. */
function isRemoved(state: string): boolean {
  const isEmpty = removeIfEmpty(`${state}/sandboxes`) && removeIfEmpty(state)
  const link = `${findHome()}/.pen`
  if (isEmpty && link !== state && lstatSync(link, { throwIfNoEntry: false })?.isSymbolicLink() === true)
    unlinkSync(link)
  return isEmpty
}

const stillUsed = ({ kind, name }: Leftover): PenError =>
  new PenError('STATE', {
    what: 'cannot be removed; it may be in use',
    at: `${kind} ${name}`,
    hint: 'end what uses it, then run pen uninstall again',
  })

function somethingElse(state: string): PenError {
  const names = [state, `${state}/sandboxes`].flatMap(namesIn).filter(name => name !== 'sandboxes')
  return new PenError('STATE', {
    what: `the state directory contains files that are not pen's: ${names.slice(0, 5).join(', ')}`,
    at: state,
    hint: 'check them, and remove them yourself',
  })
}
