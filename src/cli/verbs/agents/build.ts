import { EXIT, PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { loadPolicy } from '../../../config/load.ts'
import { findProject } from '../../../config/project.ts'
import { BUILD_LOG, BuildStopped, buildImage } from '../../../image/build-image.ts'
import { chooseEngine } from '../../../image/choose-engine.ts'
import { imageFacts } from '../../../image/inspect.ts'
import type { Candidate } from '../../../image/recipe.ts'
import { agreeTo, defaultRecipe, findCandidate, projectRecipe } from '../../../image/recipe.ts'
import { agrees, canAsk } from '../../frame/ask.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { flagDocument, policyFlags } from '../../frame/policy-flags.ts'
import type { Terminal } from '../../frame/terminal.ts'
import { defineVerb } from '../../frame/verb.ts'
import { allNew, lineDifference } from '../../render/line-difference.ts'

export const verb = defineVerb({
  name: 'build',
  summary: "Build the image of this project's sandbox",
  details:
    'A Dockerfile of the project (.pen/Dockerfile, or image.dockerfile in the live config) is built only after you have seen it and agreed, and again after every change; what is built is what was shown, also when the file changes meanwhile. Without one, pen builds its own. A build has the network of the project and nothing else. Without a terminal nobody is asked: then --yes needs the digest of what was shown. Exit code 1 when it was not agreed to or the build failed.',
  flags: {
    ...policyFlags,
    pull: { kind: 'boolean', about: 'fetch base images also when they are here' },
    'no-cache': { kind: 'boolean', about: 'run every step again' },
    quiet: { kind: 'boolean', about: 'say nothing while it builds' },
    yes: { kind: 'boolean', about: 'do not ask; only together with --expect' },
    expect: { kind: 'string', value: 'sha256:…', about: 'the digest that pen build printed' },
    ...jsonFlag,
  },
  examples: [
    { line: 'pen build', does: 'shows what is new in the Dockerfile, asks, and builds' },
    { line: 'pen build --pull', does: 'with a fresh base image' },
    { line: 'pen build --yes --expect sha256:…', does: 'builds the Dockerfile with this digest, or nothing' },
  ],
  async run({ flags, terminal }) {
    checkExpectation(flags)
    const project = findProject()
    const { policy } = await loadPolicy(project, {
      flags: flagDocument(flags, project),
      allowUserExpansion: flags['allow-user-expansion'],
      offline: flags.offline,
    })
    const engine = await chooseEngine(policy)
    const candidate = findCandidate(policy, project)
    const recipe =
      candidate === undefined ? defaultRecipe(policy) : projectRecipe(candidate.text, policy, project)
    if (candidate !== undefined && candidate.agreed !== candidate.text) {
      if (!(await isAgreed(candidate, flags, terminal))) return EXIT.failed
      agreeTo(candidate, project)
    } else if (flags.expect !== undefined) requireExpected(candidate, flags.expect)
    const silent = flags.quiet || flags.json
    const building = buildImage(recipe, {
      policy,
      project,
      engine,
      pull: flags.pull,
      cache: !flags['no-cache'],
      show: line => {
        if (!silent) terminal.note(line)
      },
      tell: line => terminal.note(`pen: ${printable(line, 4096)}`),
    })
    const built = await building.catch((error: unknown) => {
      if (error instanceof BuildStopped) return error.exitCode
      throw error
    })
    if (typeof built === 'number') return built
    // Looked at now, so that the first start does not have to.
    await imageFacts(engine, built.id, `${project.world.state}/cache`)
    const log = `${project.stateDir}/${BUILD_LOG}`
    if (flags.json) terminal.printJson({ version: 1, built: true, engine: engine.name, ...built, log })
    else terminal.print(`built: ${built.name}`)
    return EXIT.ok
  },
})

interface Agreement {
  readonly yes: boolean
  readonly expect: string | undefined
  readonly json: boolean
}

/** Shows what is new. Whoever agrees, agrees to the very text that was read. */
async function isAgreed(candidate: Candidate, flags: Agreement, terminal: Terminal): Promise<boolean> {
  const { path, text, digest, agreed } = candidate
  if (flags.expect !== undefined) {
    requireExpected(candidate, flags.expect)
    return true
  }
  if (!flags.json) {
    const what = agreed === undefined ? 'is new to you' : 'has changed since you agreed to it'
    terminal.print(printable(`${path} ${what}:`, 4096))
    const { paint } = terminal
    terminal.print(agreed === undefined ? allNew(text, paint) : lineDifference(agreed, text, paint))
    terminal.print(digest)
  }
  if (flags.json || !(await canAsk())) {
    if (flags.json) terminal.printJson({ version: 1, built: false, dockerfile: path, digest, text })
    else
      terminal.print(
        `not built: there is nobody to ask. After reading it: pen build --yes --expect ${digest}`,
      )
    return false
  }
  if (agrees('Build this?', terminal)) return true
  terminal.print('not built')
  return false
}

function requireExpected(candidate: Candidate | undefined, expected: string): void {
  if (candidate?.digest === expected) return
  throw new PenError('CONFIG_VALUE', {
    what:
      candidate === undefined
        ? 'the project has no Dockerfile any more'
        : 'the Dockerfile is not the one that was shown: it has changed since',
    at: '--expect',
    hint: 'look again with pen build',
  })
}

function checkExpectation({ yes, expect }: Agreement): void {
  if (yes !== (expect !== undefined))
    throw new PenError('USAGE', {
      what: yes ? '--yes needs to know what you have seen' : '--expect is for --yes',
      at: yes ? '--yes' : '--expect',
      hint: 'write pen build --yes --expect sha256:…, with the digest that pen build printed',
    })
  if (expect !== undefined && !/^sha256:[0-9a-f]{64}$/.test(expect))
    throw new PenError('USAGE', {
      what: 'this is no digest',
      at: '--expect',
      hint: 'copy the digest that pen build printed, "sha256:" and 64 digits',
    })
}
