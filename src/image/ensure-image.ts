/** The image of a sandbox that is about to start. pen's own is built where it is missing; a project's only by `pen build`. */
import type { Engine } from '../backend/container/engine/engine.ts'
import { PenError } from '../base/error.ts'
import type { Project } from '../config/project.ts'
import type { Policy } from '../policy/policy.ts'
import { imageFor, recipeFor, type SandboxImage } from './image-for.ts'
import { findImage, localName } from './inspect.ts'

export async function ensureImage(
  policy: Policy,
  project: Project,
  engine: Engine,
  tell: (line: string) => void,
): Promise<SandboxImage> {
  const { recipe } = recipeFor(policy, project)
  if (recipe.from === 'pen' && (await findImage(engine, localName(engine, recipe.name))) === undefined) {
    const { buildImage, BuildStopped } = await import('./build-image.ts')
    tell('building the image of sandboxes, once')
    const options = { policy, project, engine, pull: false, cache: true, show: tell, tell }
    await buildImage(recipe, options).catch((error: unknown) => {
      if (!(error instanceof BuildStopped)) throw error
      throw new PenError('BACKEND', {
        what: 'the build of the image was stopped',
        hint: 'build it: pen build',
      })
    })
  }
  return await imageFor(recipe, project, engine)
}
