import { EXIT, type ExitCode, PenError } from '../../../base/error.ts'
import { nearest } from '../../../base/nearest.ts'
import { printable } from '../../../base/printable.ts'
import type { Project } from '../../../config/project.ts'
import { requestValue } from '../../../control/client.ts'
import { orderToJoin } from '../../../control/stored-order.ts'
import { type AgentPreset, isPresetName, PRESETS, type PresetName } from '../../../policy/presets.ts'
import { addressWords, openFor, whatItOpens } from '../../../run/agent-preset.ts'
import { leaveInstructions } from '../../../run/instructions.ts'
import type { Prepared } from '../../../run/prepare.ts'
import { prepare } from '../../../run/prepare.ts'
import { runSandbox } from '../../../run/run-sandbox.ts'
import type { SandboxStatus } from '../../../run/status.ts'
import { findCommand } from '../../../survey/find-command.ts'
import { execInside } from '../../frame/exec-inside.ts'
import { debugFlag } from '../../frame/flag-spec.ts'
import { flagDocument, loadOptions, type PolicyFlags, policyFlags } from '../../frame/policy-flags.ts'
import type { Terminal } from '../../frame/terminal.ts'
import { defineVerb } from '../../frame/verb.ts'
import { showPlan } from '../run/plan.ts'

export const verb = defineVerb({
  name: 'agent',
  summary: "Run a coding agent in this project's sandbox",
  details:
    "Without a name, pen lists the known agents. The preset allows the agent's hosts, stores its settings and login in volumes, and passes its API keys if set. Your own credentials stay on the host. Your config and flags override the preset. If a sandbox started with --agent is running, the agent runs there. Arguments after -- go to the agent.",
  flags: {
    ...policyFlags,
    ...debugFlag,
    'dry-run-policy': { kind: 'boolean', about: 'print the merged policy and the plan; run nothing' },
  },
  positionals: { name: { arity: 'optional', about: 'the agent' } },
  command: 'after-dashes',
  examples: {
    'pen agent': 'list the known agents and what each one needs',
    'pen agent claude-code': 'run Claude Code in this project',
    'pen agent codex --group npm -- exec "run the tests"': 'allow npm packages, and give it a task',
    'pen agent gemini --dry-run-policy': 'show the policy; run nothing',
  },
  async run(invocation) {
    const { flags, positionals, command, env, terminal, answer } = invocation
    const { name } = positionals
    if (name === undefined) {
      if (command.length > 0)
        throw new PenError('USAGE', {
          what: 'no agent given',
          at: 'pen agent',
          hint: 'pen agent lists the known agents',
        })
      answer({ version: 1, agents: Object.entries(PRESETS).map(asData) }, Object.entries(PRESETS).map(asText))
      return EXIT.ok
    }
    const preset = presetNamed(name)
    const { project } = invocation
    if (!flags['dry-run-policy']) {
      const code = await runInRunningSandbox({ project, preset, flags, words: command, env, terminal })
      if (code !== undefined) return code
    }
    const opening = openFor(preset, env)
    const request = {
      project,
      command: [...PRESETS[preset].command, ...addressWords(PRESETS[preset], env), ...command],
      env,
      preset: opening,
      ...loadOptions(flags, project),
    }
    const explain = (prepared: Prepared): PenError | undefined => {
      if (!flags.json)
        for (const line of whatItOpens(preset, opening, prepared, env))
          terminal.note(printable(`pen: ${line}`, 1024))
      return missingOnHost(preset, prepared, env['PATH'] ?? '')
    }
    if (flags['dry-run-policy']) {
      const prepared = await prepare(request)
      const missing = explain(prepared)
      if (missing !== undefined) terminal.note(`pen: ${missing.message}\n  fix: ${missing.hint}`)
      showPlan(prepared, answer)
      return EXIT.ok
    }
    let fromImage = false
    const code = await runSandbox({
      ...request,
      tell: line => terminal.note(`pen: ${line}`),
      onPlan: prepared => {
        const missing = explain(prepared)
        if (missing !== undefined) throw missing
        fromImage = prepared.backend.engine !== undefined
        leaveInstructions(PRESETS[preset], prepared)
      },
    })
    if (code === EXIT.notFound && fromImage) terminal.note(`pen: ${notInstalled(PRESETS[preset], true)}`)
    return code
  },
})

function presetNamed(name: string): PresetName {
  if (isPresetName(name)) return name
  const byProgram = Object.entries(PRESETS).find(([, { command }]) => command[0] === name)?.[0]
  const meant = byProgram ?? nearest(name, Object.keys(PRESETS))
  throw new PenError('USAGE', {
    what: `unknown agent "${printable(name, 64)}"`,
    at: 'pen agent',
    hint:
      meant === undefined
        ? `known agents: ${Object.keys(PRESETS).join(', ')}; run any other program with pen run`
        : `did you mean pen agent ${meant}?`,
  })
}

interface AgentRun {
  readonly project: Project
  readonly preset: PresetName
  readonly flags: PolicyFlags
  /** Arguments for the agent. */
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly terminal: Terminal
}

/**
 * Runs the agent in the project's own sandbox, with the policy that it was started with. Undefined if `pen start` was
 * not used. A sandbox that ended without `pen stop` is started again.
 */
async function runInRunningSandbox(run: AgentRun): Promise<ExitCode | undefined> {
  const { project, preset, flags, words, env, terminal } = run
  const order = await orderToJoin(project.stateDir)
  if (order === undefined) return undefined
  const { command, title } = PRESETS[preset]
  if (order.agent !== preset)
    throw new PenError('STATE', {
      what: `the running sandbox is not prepared for ${title}`,
      hint: `pen restart --agent ${preset}`,
    })
  const { env: _, ...others } = flagDocument(flags, project) as Record<string, unknown>
  if (Object.keys(others).length > 0 || flags.offline || flags['allow-user-expansion'])
    throw new PenError('USAGE', {
      what: 'the sandbox is running with other flags',
      at: 'pen agent',
      hint: `pen restart --agent ${preset} with these flags; only --env works here`,
    })
  const status = (await requestValue(project.stateDir, 'status'))?.value as SandboxStatus | undefined
  terminal.note(`pen: ${title} runs in the sandbox that is already running (pen status)`)
  const code = await execInside({
    project,
    command: [...command, ...addressWords(PRESETS[preset], env), ...words],
    env,
    terminal,
    variables: flags.env,
  })
  if (code === EXIT.notFound)
    terminal.note(`pen: ${notInstalled(PRESETS[preset], (status?.image ?? null) !== null)}`)
  return code
}

const notInstalled = ({ title, install }: AgentPreset, isImage: boolean): string =>
  isImage
    ? `${title} is not in the image\n  fix: add "RUN ${install}" to a Dockerfile of the project (image.dockerfile), then pen build`
    : `${title} is not visible in the sandbox\n  fix: install it for all users: ${install}`

/** Checks before the launch, so that the fix can name the agent's installer. An image's programs are unknown here. */
function missingOnHost(
  name: PresetName,
  { plan, backend }: Prepared,
  hostPath: string,
): PenError | undefined {
  if (backend.engine !== undefined) return undefined
  const found = findCommand(plan, hostPath)
  if (found.ok) return undefined
  const { title, install } = PRESETS[name]
  return new PenError('MISSING_TOOL', {
    what: `${title} is not visible in the sandbox: ${found.what}`,
    hint: found.hint.startsWith('the host has it') ? found.hint : `install it for all users: ${install}`,
  })
}

const asData = ([name, preset]: readonly [string, AgentPreset]) => ({
  name,
  version: preset.version,
  title: preset.title,
  command: preset.command,
  groups: preset.providers.map(({ group, always, keys }) => ({ group, always, keys })),
  hosts: preset.hosts,
  volumes: preset.volumes.map(({ volume, at, holds }) => ({ volume, at, holds })),
  passes: preset.passes,
  sets: preset.sets,
  ownSandboxOff: preset.ownSandboxOff ?? null,
  install: preset.install,
})

const asText = ([name, { title, providers, hosts, volumes, install }]: readonly [string, AgentPreset]) =>
  [
    `${name}: ${title}`,
    `  opens    ${providers.map(({ group, always, keys }) => (always ? `group ${group}` : `group ${group} if ${keys.join(' or ')} is set`)).join(', ')}`,
    ...hosts.map(({ rule, reason }) => `           ${rule}, ${reason}`),
    ...volumes.map(({ volume, at, holds }) => `  keeps    ${at} in volume ${volume}: ${holds}`),
    `  install  ${install}`,
  ].join('\n')
