/** Whether an engine has pen's own image already. Asked once, and remembered: an engine takes longer to answer than a start. */
import { type EngineName, findEngine, mayAsk } from '../backend/container/engine/engine.ts'
import type { Policy } from '../policy/policy.ts'
import { cachedImageId, cacheImageAbsence, cacheImageId, isCachedAbsent } from './image-cache.ts'
import { findImage, localName } from './inspect.ts'
import { defaultRecipe } from './recipe.ts'

export async function hasOwnImage(name: EngineName, policy: Policy, cacheDir: string): Promise<boolean> {
  try {
    const engine = findEngine(name)
    if (engine === undefined || (name === 'docker' && !mayAsk(engine))) return false
    const image = defaultRecipe(policy).name
    if (isCachedAbsent(engine, image, cacheDir)) return false
    const recalled = cachedImageId(engine, image, cacheDir)
    // Also of one that is known: somebody may have removed it.
    const id = await findImage(engine, localName(engine, image))
    if (id === undefined) cacheImageAbsence(engine, image, cacheDir)
    else if (id !== recalled) cacheImageId(engine, image, id, cacheDir)
    return id !== undefined
  } catch {
    // An engine that does not work has none to start from.
    return false
  }
}
