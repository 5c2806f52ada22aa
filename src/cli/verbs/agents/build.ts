import { filesToPrepare } from '../../../backend/probe.ts'
import { EXIT, PenError } from '../../../base/error.ts'
import { resolve } from '../../../base/posix-path.ts'
import { printable } from '../../../base/printable.ts'
import { loadPolicy } from '../../../config/load.ts'
import { BUILD_LOG, BuildStopped, buildImage } from '../../../image/build-image.ts'
import { chooseEngine } from '../../../image/image-for.ts'
import { imageFacts } from '../../../image/inspect.ts'
import type { Candidate } from '../../../image/recipe.ts'
import { agreeTo, defaultRecipe, findCandidate, projectRecipe } from '../../../image/recipe.ts'
import { askAbout, type Confirmation, confirmationFlags, expectedDigest } from '../../frame/ask.ts'
import { loadOptions, policyFlags } from '../../frame/policy-flags.ts'
import { defineVerb, type Invocation } from '../../frame/verb.ts'
import { allNew, lineDifference } from '../../render/line-difference.ts'

export const verb = defineVerb({
  name: 'build',
  summary: "Build the image of this project's sandbox",
  details:
    "pen shows a project Dockerfile (.pen/Dockerfile, or image.dockerfile in the live config) and builds it only after you confirm, again after each change. It builds exactly what it showed. Without one it builds pen's image. The build has the project's network only. Without a terminal use --yes --expect DIGEST. Exit code 1 if not confirmed or failed.",
  flags: {
    ...policyFlags,
    pull: { kind: 'boolean', about: 'let the engine pull base images' },
    'no-cache': { kind: 'boolean', about: 'run every step again' },
    'vm-files': {
      kind: 'string',
      value: 'PATH',
      about: 'with --isolation vm: take its kernel, BusyBox and virtiofsd from this directory',
    },
    quiet: { kind: 'boolean', about: 'no progress output' },
    ...confirmationFlags('pen build'),
  },
  examples: {
    'pen build': 'show what is new in the Dockerfile, ask, and build',
    'pen build --pull': 'with a new base image',
    'pen build --isolation vm': 'prepare the kernel of virtual machines, once for all projects',
    'pen build --yes --expect sha256:…': 'build the Dockerfile with this digest, or nothing',
  },
  async run({ flags, terminal, project, answer }) {
    expectedDigest(flags, 'pen build', 'pen build')
    const { policy } = await loadPolicy(project, loadOptions(flags, project))
    const silent = flags.quiet || flags.json
    const notify = (line: string): void => terminal.note(`pen: ${printable(line, 4096)}`)
    const prepareFiles = await filesToPrepare(policy)
    const from = flags['vm-files']
    // With an image, the first start prepares what is missing.
    if (prepareFiles !== undefined && (policy.image === 'default' || from !== undefined)) {
      const dir = from === undefined ? undefined : resolve(from)
      const files = await prepareFiles(`${project.world.state}/cache`, silent ? () => undefined : notify, dir)
      if (policy.image === 'default') {
        answer({ version: 1, built: true, files }, `prepared: ${files}`)
        return EXIT.ok
      }
    } else if (from !== undefined && prepareFiles === undefined)
      throw new PenError('USAGE', {
        what: '--vm-files is for isolation "vm"',
        hint: 'pen build --isolation vm --vm-files DIR',
      })
    const engine = await chooseEngine(policy)
    const candidate = findCandidate(policy, project)
    const recipe =
      candidate === undefined ? defaultRecipe(policy) : projectRecipe(candidate.text, policy, project)
    if (candidate !== undefined && candidate.agreed !== candidate.text) {
      if (!isConfirmed(candidate, flags, { terminal, answer })) return EXIT.failed
      agreeTo(candidate, project)
    } else if (flags.expect !== undefined) requireExpected(candidate, flags.expect)
    const building = buildImage(recipe, {
      policy,
      project,
      engine,
      pull: flags.pull,
      cache: !flags['no-cache'],
      show: line => {
        if (!silent) terminal.note(line)
      },
      notify,
    })
    const built = await building.catch((error: unknown) => {
      if (error instanceof BuildStopped) return error.exitCode
      throw error
    })
    if (typeof built === 'number') return built
    // Inspect the image now, so that the first start is faster.
    await imageFacts(engine, built.id, `${project.world.state}/cache`)
    const log = `${project.stateDir}/${BUILD_LOG}`
    answer({ version: 1, built: true, engine: engine.name, ...built, log }, `built: ${built.name}`)
    return EXIT.ok
  },
})

/** Shows what is new and asks. The confirmation is for exactly this text. */
function isConfirmed(
  candidate: Candidate,
  flags: Confirmation & { readonly json: boolean },
  { terminal, answer }: Pick<Invocation, 'terminal' | 'answer'>,
): boolean {
  const { path, text, digest, agreed } = candidate
  if (flags.expect !== undefined) {
    requireExpected(candidate, flags.expect)
    return true
  }
  if (!flags.json) {
    const what = agreed === undefined ? 'is new' : 'has changed since you confirmed it'
    terminal.print(printable(`${path} ${what}:`, 4096))
    const { paint } = terminal
    terminal.print(agreed === undefined ? allNew(text, paint) : lineDifference(agreed, text, paint))
    terminal.print(digest)
  }
  const what = { done: 'built', command: 'pen build', digest, json: flags.json }
  const why = askAbout('Build this?', what, terminal)
  if (why !== undefined) answer({ version: 1, built: false, dockerfile: path, digest, text }, why)
  return why === undefined
}

function requireExpected(candidate: Candidate | undefined, expected: string): void {
  if (candidate?.digest === expected) return
  throw new PenError('CONFIG_VALUE', {
    what:
      candidate === undefined ? 'the project has no Dockerfile' : 'the Dockerfile changed since it was shown',
    at: '--expect',
    hint: 'pen build',
  })
}
