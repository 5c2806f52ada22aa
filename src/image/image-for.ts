/** Finds the image of a sandbox, and builds pen's own image if a start needs it. */
import {
  ENGINE_NAMES,
  type Engine,
  type EngineName,
  findEngine,
  mayUseDaemon,
  requireEngine,
  tryEngine,
} from '../backend/container/engine/engine.ts'
import { PenError } from '../base/error.ts'
import type { Project } from '../config/project.ts'
import type { Policy } from '../policy/policy.ts'
import {
  ABSENT,
  cachedFacts,
  cachedImageId,
  cacheImageId,
  findImage,
  type ImageFacts,
  imageFacts,
  localName,
} from './inspect.ts'
import { defaultRecipe, findCandidate, projectRecipe, type Recipe } from './recipe.ts'

/** The engine for a build: the one in the policy, else the first that answers. */
export async function chooseEngine({ backend }: Policy): Promise<Engine> {
  const named = ENGINE_NAMES.find(name => name === backend)
  if (named !== undefined) return requireEngine(named)
  if (backend !== 'any')
    throw new PenError('BACKEND', {
      what: `backend "${backend}" has no images`,
      hint: `name one that has: ${ENGINE_NAMES.map(name => `--backend ${name}`).join(' or ')}`,
    })
  for (const name of ENGINE_NAMES) {
    const engine = findEngine(name)
    if (engine !== undefined && (await tryEngine(engine, ['info'])).code === 0) return engine
  }
  throw new PenError('MISSING_TOOL', {
    what: 'no container engine answers on this machine',
    hint: 'install podman; what is missing: pen doctor',
  })
}

export interface SandboxImage extends ImageFacts {
  /** The content id: an image that takes over the name in the meantime is not started. */
  readonly id: string
  readonly name: string
}

/** The image of the last lookup, without asking the engine. */
export function cachedImageFor(recipe: Recipe, project: Project, engine: Engine): SandboxImage | undefined {
  const cacheDir = `${project.world.state}/cache`
  const id = cachedImageId(engine, recipe.name, cacheDir)
  if (id === undefined || id === ABSENT) return undefined
  const facts = cachedFacts(id, cacheDir)
  return facts === undefined ? undefined : { id, name: recipe.name, ...facts }
}

/** The recipe of the sandbox's image. From the project it uses only a Dockerfile that the user agreed to. */
export function recipeFor(
  policy: Policy,
  project: Project,
): { readonly recipe: Recipe; readonly notes: readonly string[] } {
  const candidate = findCandidate(policy, project)
  if (candidate === undefined) return { recipe: defaultRecipe(policy), notes: [] }
  if (candidate.agreed === undefined)
    throw new PenError('BACKEND', {
      what: 'the project has a Dockerfile that you have not agreed to',
      at: candidate.path,
      hint: 'read it and build it with pen build; or use pen’s own image: pen config set image.dockerfile default',
    })
  const recipe = projectRecipe(candidate.agreed, policy, project)
  const changed = `${candidate.path} changed after you agreed to it: the agreed version is used until pen build`
  return { recipe, notes: candidate.agreed === candidate.text ? [] : [changed] }
}

/** Whether an engine has pen's own image. The answer is cached, because asking an engine takes longer than a start. */
export async function hasOwnImage(name: EngineName, policy: Policy, cacheDir: string): Promise<boolean> {
  try {
    const engine = findEngine(name)
    if (engine === undefined || (engine.daemon && !mayUseDaemon(engine))) return false
    const image = defaultRecipe(policy).name
    const recalled = cachedImageId(engine, image, cacheDir)
    if (recalled === ABSENT) return false
    // Also check a cached image, because it may have been removed.
    const id = await findImage(engine, localName(engine, image))
    if (id === undefined || id !== recalled) cacheImageId(engine, image, id ?? ABSENT, cacheDir)
    return id !== undefined
  } catch {
    // A broken engine has no image to start from.
    return false
  }
}

/** The image of a sandbox that is about to start. Builds pen's own image if it is missing. Only `pen build` builds a project's. */
export async function ensureImage(
  policy: Policy,
  project: Project,
  engine: Engine,
  notify: (line: string) => void,
): Promise<SandboxImage> {
  const { recipe } = recipeFor(policy, project)
  const { name } = recipe
  const cacheDir = `${project.world.state}/cache`
  let id = await findImage(engine, localName(engine, name))
  if (id === undefined && recipe.from === 'pen') {
    const { buildImage, BuildStopped } = await import('./build-image.ts')
    notify('building the image of sandboxes, once')
    const options = { policy, project, engine, pull: false, cache: true, show: notify, notify }
    const built = await buildImage(recipe, options).catch((error: unknown) => {
      if (!(error instanceof BuildStopped)) throw error
      throw new PenError('BACKEND', {
        what: 'the build of the image was stopped',
        hint: 'build it: pen build',
      })
    })
    id = built.id
  }
  if (id === undefined)
    throw new PenError('IMAGE', {
      what: `${engine.name} does not have the image of this sandbox yet (${name})`,
      hint: 'build it: pen build',
    })
  const facts = await imageFacts(engine, id, cacheDir)
  cacheImageId(engine, name, id, cacheDir)
  return { id, name, ...facts }
}
