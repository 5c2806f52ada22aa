/** The image that a sandbox is started from, if it is there. Nothing is built here, and nothing is pulled. */
import type { Engine } from '../backend/container/engine/engine.ts'
import { PenError } from '../base/error.ts'
import type { Project } from '../config/project.ts'
import type { Policy } from '../policy/policy.ts'
import { cachedImageId, cacheImageId } from './image-cache.ts'
import { cachedFacts, findImage, type ImageFacts, imageFacts, localName } from './inspect.ts'
import { defaultRecipe, findCandidate, projectRecipe, type Recipe } from './recipe.ts'

export interface SandboxImage extends ImageFacts {
  /** By its contents: what another puts under the same name meanwhile is not started. */
  readonly id: string
  readonly name: string
}

export async function imageFor(recipe: Recipe, project: Project, engine: Engine): Promise<SandboxImage> {
  const cacheDir = `${project.world.state}/cache`
  const id = await findImage(engine, localName(engine, recipe.name))
  if (id === undefined)
    throw new PenError('IMAGE', {
      what: `${engine.name} does not have the image of this sandbox yet (${recipe.name})`,
      hint: 'build it: pen build',
    })
  const facts = await imageFacts(engine, id, cacheDir)
  cacheImageId(engine, recipe.name, id, cacheDir)
  return { id, name: recipe.name, ...facts }
}

/** As it was found last, without asking the engine. */
export function cachedImageFor(recipe: Recipe, project: Project, engine: Engine): SandboxImage | undefined {
  const cacheDir = `${project.world.state}/cache`
  const id = cachedImageId(engine, recipe.name, cacheDir)
  const facts = id === undefined ? undefined : cachedFacts(id, cacheDir)
  return id === undefined || facts === undefined ? undefined : { id, name: recipe.name, ...facts }
}

/** What the sandbox is to be made from: of the project only what was agreed to. */
export function recipeFor(
  policy: Policy,
  project: Project,
): { readonly recipe: Recipe; readonly notes: readonly string[] } {
  const candidate = findCandidate(policy, project)
  if (candidate === undefined) return { recipe: defaultRecipe(policy), notes: [] }
  if (candidate.agreed === undefined)
    throw new PenError('BACKEND', {
      what: 'the project brings a Dockerfile that nobody has agreed to',
      at: candidate.path,
      hint: 'read it and build it with pen build; or use pen’s own image: pen config set image.dockerfile default',
    })
  const recipe = projectRecipe(candidate.agreed, policy, project)
  const changed = `${candidate.path} has changed since it was agreed to: the image is of the agreed one, until pen build`
  return { recipe, notes: candidate.agreed === candidate.text ? [] : [changed] }
}
