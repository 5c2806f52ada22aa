/** A recipe becomes an image: with its own network, its own copy of the files, and everything given back at the end. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { version } from '../../package.json'
import { openAudit } from '../audit/append.ts'
import { auditDirectory } from '../audit/directory.ts'
import { RefusalTally } from '../audit/refusals.ts'
import { newRunId } from '../audit/segment-name.ts'
import { BUILD_ENVIRONMENT, buildArguments } from '../backend/container/build-arguments.ts'
import type { Engine } from '../backend/container/engine/engine.ts'
import { engineFacts } from '../backend/container/engine/engine-facts.ts'
import { forgetLast } from '../backend/container/head-start.ts'
import { removeTree } from '../base/beneath/remove-tree.ts'
import { type ExitCode, PenError } from '../base/error.ts'
import { kernelRelease } from '../base/kernel/kernel-release.ts'
import { onCleanupFailure, UndoStack } from '../base/undo.ts'
import { takeLock } from '../config/lock.ts'
import { makeStateDirectory, type Project } from '../config/project.ts'
import { CORES } from '../limits/bounds.ts'
import { describeHit, type LimitHit } from '../limits/limit-hit.ts'
import { policyData } from '../plan/data.ts'
import type { Policy } from '../policy/policy.ts'
import { copyContext } from './build-context.ts'
import { planBuildNetwork } from './build-network.ts'
import { imagesNamed } from './check-dockerfile.ts'
import { cacheImageId } from './image-cache.ts'
import { noteUse, ownerLabel, replacedImages } from './in-use.ts'
import { findImage, localName } from './inspect.ts'
import { pullImage } from './pull-image.ts'
import { BASE_ARGUMENT, baseOf, defaultRecipe, type Recipe } from './recipe.ts'
import { runBuild } from './run-build.ts'

export interface BuildOptions {
  readonly policy: Policy
  readonly project: Project
  readonly engine: Engine
  /** Fetches base images also when they are here: `--pull`. */
  readonly pull: boolean
  readonly cache: boolean
  /** One line of what the build says, safe to show; and pen's own. */
  readonly show: (line: string) => void
  readonly tell: (line: string) => void
}

export interface Built {
  readonly id: string
  readonly name: string
}

/** Somebody has ended it, and knows. */
export class BuildStopped extends Error {
  override readonly name = 'BuildStopped'
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode) {
    super('the build was stopped')
    this.exitCode = exitCode
  }
}

/** In the state of the project, as the last build left it. */
export const BUILD_LOG = 'build.log'

/** What it is based on first, where that is pen's own image and is not there. */
export async function buildImage(recipe: Recipe, options: BuildOptions): Promise<Built> {
  if (!recipe.onDefault) return await buildOne(recipe, options)
  const own = defaultRecipe(options.policy)
  const base =
    (await findImage(options.engine, localName(options.engine, own.name))) ??
    (await buildOne(own, options)).id
  const args = new Map([...recipe.args, [BASE_ARGUMENT, base]])
  return await buildOne({ ...recipe, args }, options)
}

async function buildOne(recipe: Recipe, options: BuildOptions): Promise<Built> {
  const { policy, project, engine, tell } = options
  makeStateDirectory(project.stateDir)
  const lock = await takeLock(`${project.stateDir}/build.lock`, {
    timeoutMs: LOCK_TIMEOUT_MS,
    busy: 'another pen is building',
  })
  const undo = new UndoStack()
  undo.push('the build lock', () => lock.release())
  try {
    removeAbandoned(project)
    const places = prepareDirectory(recipe, project, undo)
    if (recipe.context !== undefined) {
      const { denied, leadingOut } = copyContext(policy, recipe.context, places.context)
      if (leadingOut.length > 0)
        tell(`left out of the build, because they lead out of its context: ${firstOf(leadingOut)}`)
      if (denied.length > 0) tell(`left out of the build, because the policy denies them: ${firstOf(denied)}`)
    }
    const cacheDir = `${project.world.state}/cache`
    const facts = await engineFacts(engine, cacheDir)
    const run = newRunId()
    const audit = openAudit(auditDirectory(project.stateDir), { sandbox: project.id, run })
    const stopReporting = onCleanupFailure(failure => audit.record({ kind: 'cleanup-failed', ...failure }))
    undo.pushToRunLast('the audit', () => {
      stopReporting()
      audit.close()
    })
    const began = Date.now()
    audit.record({
      kind: 'run-start',
      policy: policyData(policy),
      backend: `${engine.name} build`,
      pen: version,
      bun: process.versions.bun ?? '',
      kernel: kernelRelease(),
      os: process.platform,
    })
    if (!options.pull) await requireImages(recipe, options)
    const base = recipe.from === 'pen' ? await requireBase(recipe, options) : undefined
    const refusals = new RefusalTally(audit)
    const { network, endPrograms, close } = await planBuildNetwork({
      engine,
      policy,
      audit: refusals,
      hosts: places.hosts,
      base,
      sandbox: { id: `build-${project.id}`, run, stateDir: project.stateDir },
      cacheDir,
    })
    undo.push('the build’s network', close)
    const argv = buildArguments(engine.name, {
      dockerfile: places.dockerfile,
      context: places.context,
      name: localName(engine, recipe.name),
      labels: [
        'pen=1',
        ownerLabel(project.world.state),
        ...(recipe.from === 'project' ? [`pen.sandbox=${project.id}`] : []),
      ],
      args: recipe.args,
      network,
      pull: options.pull,
      cache: options.cache,
      memory: facts.held.includes('memory') ? policy.limits.memory : undefined,
      cpus: facts.held.includes('cpus') ? Math.min(policy.limits.cpus, CORES) : undefined,
      ulimits: ulimits(policy),
    })
    const runtime = policy.runtime === 'default' || engine.daemon ? [] : ['--runtime', policy.runtime]
    const { code, stopped, hit } = await runBuild({
      argv: [engine.program, ...engine.flags, ...runtime, ...argv],
      env: { ...engine.env, ...BUILD_ENVIRONMENT },
      log: `${project.stateDir}/${BUILD_LOG}`,
      show: options.show,
      endPrograms,
      endsByItself: network.kind === 'namespace',
      bounds: { limits: policy.limits, held: facts.held, engine, storage: facts.storage, network },
    })
    if (hit !== undefined)
      audit.record({ kind: 'limit-hit', limit: hit.limit, value: String(hit.used), reason: stoppedBy(hit) })
    audit.record({ kind: 'run-end', exitCode: stopped ?? code, ms: Date.now() - began })
    if (stopped !== undefined) throw new BuildStopped(stopped)
    if (hit !== undefined) throw beyond(hit)
    for (const line of refusals.lines()) tell(line)
    const id = code === 0 ? await findImage(engine, localName(engine, recipe.name)) : undefined
    if (id === undefined) throw failed(code, project)
    forgetLast(project.stateDir)
    cacheImageId(engine, recipe.name, id, cacheDir)
    noteUse(project.stateDir, recipe.name)
    await replacedImages(engine, project.world.state, { remove: true })
    return { id, name: recipe.name }
  } finally {
    await undo.unwind()
  }
}

const LOCK_TIMEOUT_MS = 600_000
const DIRECTORY = 'build-'

/** What a pen that was killed had to leave. Whoever holds the lock knows that nobody uses it. */
function removeAbandoned({ stateDir }: Project): void {
  for (const name of readdirSync(stateDir)) if (name.startsWith(DIRECTORY)) removeTree(`${stateDir}/${name}`)
}

interface Places {
  readonly dockerfile: string
  readonly context: string
  readonly hosts: string
}

/** Nobody else can write there, and no sandbox sees it: what the engine reads is what was agreed to. */
function prepareDirectory(recipe: Recipe, project: Project, undo: UndoStack): Places {
  const directory = mkdtempSync(`${project.stateDir}/${DIRECTORY}`)
  undo.push('the build directory', () => removeTree(directory))
  const places = {
    dockerfile: `${directory}/Dockerfile`,
    context: `${directory}/context`,
    hosts: `${directory}/hosts`,
  }
  writeFileSync(places.dockerfile, recipe.dockerfile, { mode: 0o600 })
  writeFileSync(places.hosts, '127.0.0.1 localhost\n::1 localhost\n', { mode: 0o644 })
  mkdirSync(places.context, { mode: 0o755 })
  return places
}

/** Whether an image that is missing may be fetched: `--pull` always fetches. */
const mayFetch = ({ policy, pull }: BuildOptions): boolean =>
  pull || policy.image === 'default' || policy.image.pull === 'missing'

/** Those that an agreed Dockerfile names, before the build: an engine that looked for them itself would not say which it lacks. */
async function requireImages({ from, dockerfile, args }: Recipe, options: BuildOptions): Promise<void> {
  if (from === 'pen') return
  for (const name of imagesNamed(dockerfile, args)) {
    if (name === '')
      throw new PenError('BACKEND', {
        what: 'the Dockerfile names an image by an argument that has no value',
        hint: 'give it one: image.args in the configuration',
      })
    await requireImage(name, options)
  }
}

/** The id of what pen's own image is built on. */
const requireBase = (recipe: Recipe, options: BuildOptions): Promise<string> =>
  requireImage(baseOf(recipe), options, { fresh: options.pull })

async function requireImage(
  name: string,
  options: BuildOptions,
  { fresh = false }: { readonly fresh?: boolean } = {},
): Promise<string> {
  const { engine, show, tell } = options
  const here = fresh ? undefined : await findImage(engine, name)
  if (here !== undefined) return here
  if (!mayFetch(options))
    throw new PenError('IMAGE', {
      what: `the base image ${name} is not here, and image.pull is "never"`,
      hint: 'fetch it once: pen build --pull; or name one that is here: pen config set image.args.BASE NAME',
    })
  tell(`fetching the image ${name}`)
  await pullImage(engine, name, show)
  const id = await findImage(engine, name)
  if (id !== undefined) return id
  throw new PenError('BACKEND', { what: `${engine.name} fetched ${name}, and does not have it` })
}

/** More than any build needs. */
const MAX_PROCESSES = 4096

/** No more than this process may have itself, or the engine's runtime refuses. */
function ulimits({ limits }: Policy): { nofile: number; nproc: number } {
  const text = readFileSync('/proc/self/limits', 'utf8')
  const within = (name: string, most: number): number =>
    Math.min(most, Number(new RegExp(`^${name}\\s+\\S+\\s+(\\d+)`, 'm').exec(text)?.[1] ?? most))
  return {
    nofile: within('Max open files', limits.files),
    nproc: within('Max processes', MAX_PROCESSES),
  }
}

const stoppedBy = (hit: LimitHit): string => describeHit(hit).replace('the sandbox', 'the build')

const beyond = (hit: LimitHit): PenError =>
  new PenError('BACKEND', {
    what: stoppedBy(hit),
    hint: `allow more: pen build --limit ${hit.limit}=…, or pen config set limits.${hit.limit}`,
  })

const failed = (exitCode: number, { stateDir }: Project): PenError =>
  new PenError('BACKEND', {
    what:
      exitCode === 0
        ? 'the engine says that it has built the image, and does not have it'
        : `the build ended with ${exitCode}`,
    at: `${stateDir}/${BUILD_LOG}`,
    hint: 'what it said is there; hosts that it needs are allowed with pen allow',
  })

const MOST_NAMED = 20

const firstOf = (paths: readonly string[]): string =>
  `${paths.slice(0, MOST_NAMED).join(', ')}${paths.length > MOST_NAMED ? ` and ${paths.length - MOST_NAMED} more` : ''}`
