/** Starts a sandbox whose programs come from an image, also when the image of the last start was removed. */
import type { Running } from '../backend/backend.ts'
import type { Engine } from '../backend/container/engine/engine.ts'
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { cachedImageFor, ensureImage, recipeFor, type SandboxImage } from '../image/image-for.ts'
import { noteUse } from '../image/in-use.ts'
import type { Prepared } from './prepare.ts'
import type { RunOptions } from './run-sandbox.ts'

/** Starts with the image of the last start, and retries once with what the engine has now. It returns the image's name. */
export async function startFromImage(
  { loaded: { policy, project } }: Prepared,
  engine: Engine,
  { headStart, tell }: RunOptions,
  start: (image: SandboxImage) => Promise<Running>,
): Promise<{ readonly running: Running; readonly image: string }> {
  const { recipe, notes } = recipeFor(policy, project)
  for (const note of notes) tell(printable(note, 1024))
  // Asks the engine, and builds the image when it is missing.
  const find = (): Promise<SandboxImage> => ensureImage(policy, project, engine, tell)
  const startWith = async (image: SandboxImage) => {
    noteImageUse(project.stateDir, image)
    return { running: await start(image), image: recipe.name }
  }
  const recalled = cachedImageFor(recipe, project, engine)
  const first = recalled ?? (await find())
  try {
    return await startWith(first)
  } catch (error) {
    const isRemoved = error instanceof PenError && error.code === 'IMAGE'
    if (recalled !== undefined && isRemoved) return await startWith(await find())
    // The container that was requested early failed. Retry from scratch.
    if (headStart?.wasTaken() === true) return await startWith(first)
    throw error
  }
}

/** For `pen gc`. Without the note the image may have to be built again, so a failure does not stop the start. */
function noteImageUse(stateDir: string, { name }: SandboxImage): void {
  try {
    noteUse(stateDir, name)
  } catch {}
}
