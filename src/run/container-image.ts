/** The image of a sandbox whose programs come from one, and a start that survives a removed image. */
import type { Running } from '../backend/backend.ts'
import type { Engine } from '../backend/container/engine/engine.ts'
import type { HeadStart } from '../backend/container/head-start.ts'
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { cachedImageFor, ensureImage, recipeFor, type SandboxImage } from '../image/image-for.ts'
import { noteUse } from '../image/in-use.ts'
import type { Prepared } from './prepare.ts'

interface ImageSource {
  readonly name: string
  /** The image of the last start, if there was one. */
  readonly recalled: SandboxImage | undefined
  /** Asks the engine, and builds the image when it is missing. */
  find(): Promise<SandboxImage>
}

export function imageSource(
  { loaded: { policy, project } }: Prepared,
  engine: Engine,
  tell: (line: string) => void,
): ImageSource {
  const { recipe, notes } = recipeFor(policy, project)
  for (const note of notes) tell(printable(note, 1024))
  return {
    name: recipe.name,
    recalled: cachedImageFor(recipe, project, engine),
    find: () => ensureImage(policy, project, engine, tell),
  }
}

/** Starts with what the last start used, and retries once with what the engine has now. */
export async function startFromImage(
  image: ImageSource,
  headStart: HeadStart | undefined,
  start: (image: SandboxImage) => Promise<Running>,
): Promise<Running> {
  const first = image.recalled ?? (await image.find())
  try {
    return await start(first)
  } catch (error) {
    const isRemoved = error instanceof PenError && error.code === 'IMAGE'
    if (image.recalled !== undefined && isRemoved) return await start(await image.find())
    // The container that was requested early failed. Retry from scratch.
    if (headStart?.wasTaken() === true) return await start(first)
    throw error
  }
}

/** For `pen gc`. Without the note the image may have to be built again, so a failure does not stop the start. */
export function noteImageUse(stateDir: string, { name }: SandboxImage): void {
  try {
    noteUse(stateDir, name)
  } catch {}
}
