/**
 * What the image of a sandbox is made from: pen's own Dockerfile, or one of the project. The project's is hostile. Whoever can write
 * the project can write it, and a build runs what it says: so what is built is the copy that a person has seen and agreed
 * to, kept where no sandbox can reach it. The file in the project is only ever compared with that.
 */
import dockerfile from '../../image/Dockerfile' with { type: 'text' }
import { writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { resolve } from '../base/posix-path.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { sha256 } from '../base/sha256.ts'
import { makeStateDirectory, type Project } from '../config/project.ts'
import type { Policy } from '../policy/policy.ts'
import { checkDockerfile } from './check-dockerfile.ts'

/** Complete: nothing of the project is read for it any more, but for the files of its context. */
export interface Recipe {
  readonly from: 'pen' | 'project'
  /** The name under which an engine has the image: changes with the Dockerfile and its arguments. */
  readonly name: string
  readonly dockerfile: string
  readonly args: ReadonlyMap<string, string>
  /** Where its COPY reads from; undefined for pen's own, which copies nothing. */
  readonly context: string | undefined
  /** Whether it names pen's own image as what it is based on. */
  readonly onDefault: boolean
}

/** A Dockerfile as it stands in the project now, beside the one that was agreed to. */
export interface Candidate {
  readonly path: string
  readonly text: string
  readonly digest: string
  readonly agreed: string | undefined
}

/** As a config document: more would not be read by whoever has to agree. */
const MAX_BYTES = 65_536
/** In the configuration: pen's own, also when the project brings one along. */
const OWN = 'default'
const PROJECT_DOCKERFILE = '.pen/Dockerfile'
const AGREED_FILE = 'agreed.dockerfile'
/** Holds pen's own image, for a Dockerfile that begins with `ARG PEN_BASE` and `FROM ${PEN_BASE}`. */
export const BASE_ARGUMENT = 'PEN_BASE'

export function defaultRecipe(policy: Policy): Recipe {
  const given = policy.image === 'default' ? [] : [...policy.image.args]
  // Those of a project's Dockerfile may stand among them.
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

/** What pen's own is built on. */
export const baseOf = ({ args, dockerfile: text }: Recipe): string =>
  args.get('BASE') ?? /^ARG BASE=(\S+)$/m.exec(text)?.[1] ?? ''

/** Undefined when pen's own is meant. */
export function findCandidate(policy: Policy, project: Project): Candidate | undefined {
  const { image } = policy
  const { workspace, home } = project.world
  const named = image === 'default' ? '' : image.dockerfile
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
      hint: 'write one, or take image.dockerfile out of the configuration',
    })
  }
  const text = strictText(bytes, path)
  return { path, text, digest: `sha256:${sha256(text)}`, agreed: agreedText(project) }
}

/** Other bytes than those that can be shown have no place in it. */
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

function agreedText({ stateDir }: Project): string | undefined {
  const path = `${stateDir}/${AGREED_FILE}`
  const bytes = readRegularFile(path, { maxBytes: MAX_BYTES, owner: 'self-or-root' })
  return bytes === undefined ? undefined : strictText(bytes, path)
}

/** From now on these bytes may be built, whatever becomes of the file. */
export function agreeTo({ text }: Candidate, { stateDir }: Project): void {
  makeStateDirectory(stateDir)
  writeFileAtomically(`${stateDir}/${AGREED_FILE}`, text)
}

/** Of a text that was agreed to, or is about to be. Throws when an engine would be led out of the build by it. */
export function projectRecipe(agreed: string, policy: Policy, project: Project): Recipe {
  checkDockerfile(
    agreed,
    policy.image === 'default' ? PROJECT_DOCKERFILE : policy.image.dockerfile || PROJECT_DOCKERFILE,
  )
  const args = policy.image === 'default' ? new Map<string, string>() : policy.image.args
  const context = policy.image === 'default' ? '.' : policy.image.context
  return {
    from: 'project',
    name: `pen/${project.id}:${digestOf(agreed, args)}`,
    dockerfile: agreed,
    args,
    context: resolve(project.world.workspace, context),
    onDefault: new RegExp(`\\b${BASE_ARGUMENT}\\b`).test(agreed),
  }
}

const digestOf = (text: string, args: ReadonlyMap<string, string>): string =>
  sha256(JSON.stringify([text, [...args].sort(([a], [b]) => (a < b ? -1 : 1))])).slice(0, 16)
