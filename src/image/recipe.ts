/**
 * The recipe of a sandbox's image: pen's own Dockerfile, or the project's. The project's is hostile, because an agent can write
 * it and a build runs it. So pen builds only a copy that a person agreed to, stored where no sandbox can reach it. The file in
 * the project is only compared with that copy.
 */
import dockerfile from '../../image/Dockerfile' with { type: 'text' }
import { writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { resolve } from '../base/posix-path.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { sha256 } from '../base/sha256.ts'
import { makeStateDirectory, type Project } from '../config/project.ts'
import type { Policy } from '../policy/policy.ts'
import type { Image } from '../policy/settings.ts'
import { checkDockerfile } from './check-dockerfile.ts'

/** Complete: a build reads nothing else from the project, except the files of its context. */
export interface Recipe {
  readonly from: 'pen' | 'project'
  /** The image's name in an engine. It changes with the Dockerfile and its arguments. */
  readonly name: string
  readonly dockerfile: string
  readonly args: ReadonlyMap<string, string>
  /** The directory for COPY. Undefined for pen's own Dockerfile, which copies nothing. */
  readonly context: string | undefined
  /** Whether it is based on pen's own image. */
  readonly onDefault: boolean
}

/** The project's Dockerfile as it is now, and the text that was agreed to. */
export interface Candidate {
  readonly path: string
  readonly text: string
  readonly digest: string
  readonly agreed: string | undefined
}

/** The same as for a config document: a longer file is too long to review. */
const MAX_BYTES = 65_536
/** In the config: pen's own image, even if the project has a Dockerfile. */
const OWN = 'default'
const PROJECT_DOCKERFILE = '.pen/Dockerfile'
const AGREED_FILE = 'agreed.dockerfile'
/** The argument that holds pen's own image, for a Dockerfile with `ARG PEN_BASE` and `FROM ${PEN_BASE}`. */
export const BASE_ARGUMENT = 'PEN_BASE'

/** The settings of a policy without any. */
const NO_SETTINGS: Image = { dockerfile: '', context: '.', args: new Map(), pull: 'missing' }

export const imageSettings = ({ image }: Policy): Image => (image === 'default' ? NO_SETTINGS : image)

export function defaultRecipe(policy: Policy): Recipe {
  const given = [...imageSettings(policy).args]
  // The config may also hold arguments of a project's Dockerfile.
  const args = new Map(given.filter(([name]) => new RegExp(`^ARG ${name}=`, 'm').test(dockerfile)))
  return {
    from: 'pen',
    name: `pen/default:${digestOf(dockerfile, args)}`,
    dockerfile,
    args,
    context: undefined,
    onDefault: false,
  }
}

/** The base of pen's own image. */
export const baseOf = ({ args, dockerfile: text }: Recipe): string =>
  args.get('BASE') ?? /^ARG BASE=(\S+)$/m.exec(text)?.[1] ?? ''

/** Undefined when pen's own image is used. */
export function findCandidate(policy: Policy, project: Project): Candidate | undefined {
  const { workspace, home } = project.world
  const { dockerfile: named } = imageSettings(policy)
  if (named === OWN) return undefined
  const path = named.startsWith('~/')
    ? `${home}/${named.slice(2)}`
    : resolve(workspace, named || PROJECT_DOCKERFILE)
  const bytes = readRegularFile(path, { maxBytes: MAX_BYTES })
  if (bytes === undefined) {
    if (named === '') return undefined
    throw new PenError('CONFIG_VALUE', {
      what: `there is no Dockerfile at ${path}`,
      at: 'image.dockerfile',
      hint: 'write one, or remove image.dockerfile from the config',
    })
  }
  const text = strictText(bytes, path)
  return { path, text, digest: `sha256:${sha256(text)}`, agreed: agreedText(project) }
}

/** Refuses bytes that cannot be shown. */
function strictText(bytes: Uint8Array, path: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw new PenError('CONFIG_FILE', {
      what: `${path} is not UTF-8`,
      at: path,
      hint: 'save it as UTF-8',
      cause,
    })
  }
}

function agreedText({ shared: { stateDir } }: Project): string | undefined {
  const path = `${stateDir}/${AGREED_FILE}`
  const bytes = readRegularFile(path, { maxBytes: MAX_BYTES, owner: 'self-or-root' })
  return bytes === undefined ? undefined : strictText(bytes, path)
}

/** From now on pen may build these bytes, even if the file changes. */
export function agreeTo({ text }: Candidate, { shared: { stateDir } }: Project): void {
  makeStateDirectory(stateDir)
  writeFileAtomically(`${stateDir}/${AGREED_FILE}`, text)
}

/** The recipe of a text that the user agreed to, or is about to. Throws if it would make an engine leave the build. */
export function projectRecipe(agreed: string, policy: Policy, project: Project): Recipe {
  const { dockerfile: named, args, context } = imageSettings(policy)
  checkDockerfile(agreed, named || PROJECT_DOCKERFILE)
  return {
    from: 'project',
    name: `pen/${project.shared.id}:${digestOf(agreed, args)}`,
    dockerfile: agreed,
    args,
    context: resolve(project.world.workspace, context),
    onDefault: new RegExp(`\\b${BASE_ARGUMENT}\\b`).test(agreed),
  }
}

const digestOf = (text: string, args: ReadonlyMap<string, string>): string =>
  sha256(JSON.stringify([text, [...args].sort(([a], [b]) => (a < b ? -1 : 1))])).slice(0, 16)
