/** Ends a sandbox and removes what pen keeps of it. Never the project. */
import { readdirSync, rmdirSync, rmSync } from 'node:fs'
import { basename } from 'node:path'
import { errnoOf, PenError } from '../base/error.ts'
import { stopSandbox } from './stop-keeper.ts'
import { placesOf, whileChanging } from './store.ts'

const VOLUMES = 'volumes'

export const isKnown = (stateDir: string): boolean => namesIn(stateDir).length > 0

export async function forgetSandbox(
  stateDir: string,
  { volumes }: { readonly volumes: boolean },
): Promise<void> {
  const lock = basename(placesOf(stateDir).changing)
  await whileChanging(stateDir, async () => {
    await stopSandbox(stateDir)
    for (const name of namesIn(stateDir))
      if (name !== lock && (volumes || name !== VOLUMES)) remove(`${stateDir}/${name}`)
  })
  // Not while the lock stands in it; and not when somebody has begun to use it again.
  try {
    rmdirSync(stateDir)
  } catch (error) {
    if (!['ENOTEMPTY', 'ENOENT', 'EEXIST'].includes(errnoOf(error) ?? '')) throw error
  }
}

/** What a sandbox put into a volume may be without the right to be removed: that is told, and the rest goes on being there. */
function remove(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true })
  } catch (error) {
    throw new PenError('STATE', {
      what: `a part of the state could not be removed (${errnoOf(error) ?? 'unknown error'})`,
      at: path,
      hint: 'remove it yourself: chmod -R u+w, then rm -r',
      cause: error,
    })
  }
}

function namesIn(stateDir: string): string[] {
  try {
    return readdirSync(stateDir)
  } catch (error) {
    if (errnoOf(error) === 'ENOENT') return []
    throw error
  }
}
