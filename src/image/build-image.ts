/** Builds an image from a recipe, with its own network and its own copy of the files. Everything is cleaned up at the end. */
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { version } from '../../package.json'
import { Audit } from '../audit/append.ts'
import { auditDirectory } from '../audit/directory.ts'
import { RefusalTally } from '../audit/refusals.ts'
import { newRunId } from '../audit/segment-name.ts'
import { BUILD_ENVIRONMENT, buildArguments } from '../backend/container/build-arguments.ts'
import type { Engine } from '../backend/container/engine/engine.ts'
import { engineFacts } from '../backend/container/engine/engine-facts.ts'
import { forgetLast } from '../backend/container/head-start.ts'
import { removeTree } from '../base/beneath/remove-tree.ts'
import { type ExitCode, PenError } from '../base/error.ts'
import { kernelRelease } from '../base/kernel/kernel-facts.ts'
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
import { noteUse, ownerLabel, replacedImages } from './in-use.ts'
import { cacheImageId, findImage, localName } from './inspect.ts'
import { pullImage } from './pull-image.ts'
import { BASE_ARGUMENT, baseOf, defaultRecipe, imageSettings, type Recipe } from './recipe.ts'
import { runBuild } from './run-build.ts'

interface BuildOptions {
  readonly policy: Policy
  readonly project: Project
  readonly engine: Engine
  /** `--pull`: fetches base images even if they exist. */
  readonly pull: boolean
  readonly cache: boolean
  /** Shows one line of the build's output, escaped. */
  readonly show: (line: string) => void
  readonly notify: (line: string) => void
}

interface Built {
  readonly id: string
  readonly name: string
}

/** The user stopped the build. */
export class BuildStopped extends Error {
  override readonly name = 'BuildStopped'
  readonly exitCode: ExitCode

  constructor(exitCode: ExitCode) {
    super('the build was stopped')
    this.exitCode = exitCode
  }
}

/** The log of the last build, in the project's state. */
export const BUILD_LOG = 'build.log'

/** Builds pen's own image first, if the recipe is based on it and it does not exist. */
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
  const { policy, project, engine, notify } = options
  const { shared } = project
  for (const dir of new Set([shared.stateDir, project.stateDir])) makeStateDirectory(dir)
  const lock = await takeLock(`${shared.stateDir}/build.lock`, {
    timeoutMs: LOCK_TIMEOUT_MS,
    busy: 'another pen is building',
  })
  const undo = new UndoStack()
  undo.push('the build lock', () => lock.release())
  try {
    removeAbandoned(project)
    const paths = prepareDirectory(recipe, project, undo)
    if (recipe.context !== undefined) {
      const { denied, outsideLinks } = copyContext(policy, recipe.context, paths.context)
      if (outsideLinks.length > 0)
        notify(`skipped links that lead out of the build context: ${firstOf(outsideLinks)}`)
      if (denied.length > 0) notify(`skipped files that the policy denies: ${firstOf(denied)}`)
    }
    const cacheDir = `${project.world.state}/cache`
    const facts = await engineFacts(engine, cacheDir)
    const run = newRunId()
    const audit = new Audit(auditDirectory(project.stateDir), { sandbox: project.id, run })
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
    const base = recipe.from === 'pen' ? await requireImage(baseOf(recipe), options, options.pull) : undefined
    if (recipe.from === 'project' && !options.pull) await requireImages(recipe, options)
    const refusals = new RefusalTally(audit)
    const { network, endPrograms } = await planBuildNetwork({
      engine,
      policy,
      audit: refusals,
      hosts: paths.hosts,
      base,
      sandbox: { id: `build-${shared.id}`, run, stateDir: shared.stateDir },
      cacheDir,
      undo,
    })
    const argv = buildArguments(engine.name, {
      dockerfile: paths.dockerfile,
      context: paths.context,
      name: localName(engine, recipe.name),
      labels: [
        'pen=1',
        ownerLabel(project.world.state),
        ...(recipe.from === 'project' ? [`pen.sandbox=${shared.id}`] : []),
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
      log: `${shared.stateDir}/${BUILD_LOG}`,
      show: options.show,
      endPrograms,
      limits: policy.limits,
      held: facts.held,
      storage: facts.storage,
      engine,
      network,
    })
    if (hit !== undefined)
      audit.record({ kind: 'limit-hit', limit: hit.limit, value: String(hit.used), reason: stoppedBy(hit) })
    audit.record({ kind: 'run-end', exitCode: stopped ?? code, ms: Date.now() - began })
    if (stopped !== undefined) throw new BuildStopped(stopped)
    if (hit !== undefined) throw beyond(hit)
    for (const line of refusals.lines()) notify(line)
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

/** Removes directories of a killed pen. The lock guarantees that no other build uses them. */
function removeAbandoned({ shared: { stateDir } }: Project): void {
  for (const name of readdirSync(stateDir)) if (name.startsWith(DIRECTORY)) removeTree(`${stateDir}/${name}`)
}

/** A private directory that no sandbox sees, so the engine reads exactly what the user agreed to. */
function prepareDirectory(recipe: Recipe, project: Project, undo: UndoStack) {
  const directory = mkdtempSync(`${project.shared.stateDir}/${DIRECTORY}`)
  undo.push('the build directory', () => removeTree(directory))
  const paths = {
    dockerfile: `${directory}/Dockerfile`,
    context: `${directory}/context`,
    hosts: `${directory}/hosts`,
  }
  writeFileSync(paths.dockerfile, recipe.dockerfile, { mode: 0o600 })
  writeFileSync(paths.hosts, '127.0.0.1 localhost\n::1 localhost\n', { mode: 0o644 })
  mkdirSync(paths.context, { mode: 0o755 })
  return paths
}

/** Checks the images of an agreed Dockerfile before the build, because engines do not report which image is missing. */
async function requireImages({ dockerfile, args }: Recipe, options: BuildOptions): Promise<void> {
  for (const name of imagesNamed(dockerfile, args)) {
    if (name === '')
      throw new PenError('BACKEND', {
        what: 'the Dockerfile names an image by an argument that has no value',
        hint: 'give it one: image.args in the configuration',
      })
    await requireImage(name, options)
  }
}

/** The id of an image. Fetches a missing one if the user allows it, and with `isFresh` also one that exists. */
async function requireImage(name: string, options: BuildOptions, isFresh = false): Promise<string> {
  const { policy, engine, pull, show, notify } = options
  const here = isFresh ? undefined : await findImage(engine, name)
  if (here !== undefined) return here
  if (!pull && imageSettings(policy).pull !== 'missing')
    throw new PenError('IMAGE', {
      what: `the base image ${name} is not on this machine, and image.pull is "never"`,
      hint: 'fetch it once: pen build --pull; or use a local one: pen config set image.args.BASE NAME',
    })
  notify(`fetching the image ${name}`)
  await pullImage(engine, name, show)
  const id = await findImage(engine, name)
  if (id !== undefined) return id
  throw new PenError('BACKEND', { what: `${engine.name} fetched ${name}, but does not list it` })
}

/** More than any build needs. */
const MAX_PROCESSES = 4096

/** At most this process's own limits, or the engine's runtime refuses. */
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

const failed = (exitCode: number, { shared: { stateDir } }: Project): PenError =>
  new PenError('BACKEND', {
    what:
      exitCode === 0
        ? 'the engine reported success, but the image does not exist'
        : `the build failed with exit code ${exitCode}`,
    at: `${stateDir}/${BUILD_LOG}`,
    hint: 'read the log; allow the hosts that it needs: pen allow HOST:PORT',
  })

const MAX_LISTED = 20

const firstOf = (paths: readonly string[]): string =>
  `${paths.slice(0, MAX_LISTED).join(', ')}${paths.length > MAX_LISTED ? ` and ${paths.length - MAX_LISTED} more` : ''}`
