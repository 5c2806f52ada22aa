/** A coding agent in the sandbox of the project that stays: what it may was decided when that was started, and is not changed here. */
import { EXIT, type ExitCode, PenError } from '../../base/error.ts'
import { findProject } from '../../config/project.ts'
import { askFor } from '../../control/client.ts'
import { orderToJoin } from '../../control/stored-order.ts'
import { type AgentPreset, PRESETS, type PresetName } from '../../policy/presets.ts'
import { addressWords } from '../../run/model-address.ts'
import type { SandboxStatus } from '../../run/status.ts'
import { execInside } from './exec-inside.ts'
import { flagDocument, type PolicyFlags } from './policy-flags.ts'
import type { Terminal } from './terminal.ts'

export interface InStarted {
  readonly preset: PresetName
  readonly flags: PolicyFlags
  /** For the agent. */
  readonly words: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly terminal: Terminal
}

/** Undefined where no sandbox of the project was started. One that ended without `pen stop` comes back. */
export async function runInStarted({
  preset,
  flags,
  words,
  env,
  terminal,
}: InStarted): Promise<ExitCode | undefined> {
  const project = findProject()
  const order = await orderToJoin(project.stateDir)
  if (order === undefined) return undefined
  const { command, title } = PRESETS[preset]
  if (order.agent !== preset)
    throw new PenError('STATE', {
      what: `the sandbox of this project was started without the volumes, hosts and variables of ${title}`,
      hint: `pen restart --agent ${preset} brings them; after pen stop, pen agent runs it in a sandbox of its own`,
    })
  const { env: _, ...others } = flagDocument(flags, project) as Record<string, unknown>
  if (Object.keys(others).length > 0 || flags.offline || flags['allow-user-expansion'])
    throw new PenError('USAGE', {
      what: 'the sandbox of this project was started, and not with these flags',
      at: 'pen agent',
      hint: `pen restart --agent ${preset} takes them; --env can be given here`,
    })
  const status = (await askFor(project.stateDir, 'status'))?.value as SandboxStatus | undefined
  terminal.note(`pen: ${title} runs in the sandbox that stays (pen status)`)
  const code = await execInside({
    project,
    command: [...command, ...addressWords(PRESETS[preset], env), ...words],
    env,
    terminal,
    variables: flags.env,
  })
  if (code === EXIT.notFound)
    terminal.note(`pen: ${notThere(PRESETS[preset], (status?.image ?? null) !== null)}`)
  return code
}

export const notThere = ({ title, install }: AgentPreset, isImage: boolean): string =>
  isImage
    ? `${title} is not in the image\n  fix: add "RUN ${install}" to a Dockerfile of the project (image.dockerfile), then pen build`
    : `${title} is not there for the sandbox\n  fix: install it for all users: ${install}`
