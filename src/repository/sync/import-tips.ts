/**
 * Imports the objects of refs that can cross. One ref with objects that are refused must not hold up the others: an agent
 * fetched a branch without its history, or wrote an odd tree. Then halves are tried.
 */
import { type ImportOptions, ImportRefused, importObjects } from '../import/import-objects.ts'

/** Each starts two boxes. */
const MAX_TRIES = 24

/** Returns why tips were refused. The first tips are tried first. */
export async function importTips(
  options: ImportOptions,
  tips: readonly string[],
  known: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const refused = new Map<string, string>()
  let tries = 0
  const bring = async (some: readonly string[]): Promise<void> => {
    try {
      tries++
      await importObjects(options, some, known)
    } catch (error) {
      if (!(error instanceof ImportRefused)) throw error
      if (some.length > 1 && tries < MAX_TRIES) {
        const half = Math.ceil(some.length / 2)
        await bring(some.slice(0, half))
        await bring(some.slice(half))
      } else for (const id of some) refused.set(id, error.why)
    }
  }
  await bring(tips)
  return refused
}
