/** Runs a command in the project's sandbox, on this terminal or in this pipeline. Starts the sandbox if needed. */
import type { ExecEnding, ExecOrder } from '../../backend/backend.ts'
import { EXIT, type ExitCode, PenError } from '../../base/error.ts'
import { phase } from '../../base/phases.ts'
import { resolve } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import { type Millis, showMillis } from '../../base/quantity.ts'
import type { Project } from '../../config/project.ts'
import { type Reply, requestRefusals, sendRequest } from '../../control/client.ts'
import { executeOver } from '../../control/execution.ts'
import { takeValue } from '../../control/messages.ts'
import { type Started, startSandbox } from '../../lifecycle/start.ts'
import { endedByLimit } from '../../run/ended-by-limit.ts'
import { attach, exitCodeOf, whyNotStarted } from '../../terminal/attach.ts'
import { isTerminal } from '../../terminal/termios.ts'
import { showHeld } from '../render/held-lines.ts'
import { withProgress } from './progress.ts'
import type { Terminal } from './terminal.ts'

export interface Inside {
  readonly project: Project
  /** Empty for a shell. */
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly terminal: Terminal
  readonly variables?: readonly string[]
  readonly cwd?: string | undefined
  readonly timeout?: Millis | undefined
  readonly interactive?: boolean
  readonly tty?: boolean
}

/** The supervisor's answer before the command starts. */
interface ExecAnswer {
  readonly timeoutMs: number | null
  /** The run's id, if connections can wait for approval. */
  readonly asking?: string
  readonly run?: string
  /** The number of refusals so far. */
  readonly refused?: number
}

export async function execInside(inside: Inside): Promise<ExitCode> {
  const { project, command, terminal, timeout } = inside
  const order: Omit<ExecOrder, 'terminal'> = {
    argv: command,
    cwd: directoryOf(inside),
    env: [...terminalName(inside), ...(inside.variables ?? []).map(text => variable(text, inside.env))],
  }
  const asked = await connect(project, timeout ?? null, terminal)
  const { timeoutMs, asking, run, refused } = takeValue(asked.answer) as ExecAnswer
  if (timeout !== undefined && timeoutMs !== null && timeoutMs < timeout)
    terminal.note(`pen: --timeout is limited to exec.ceiling (${showMillis(timeoutMs as Millis)})`)
  phase('supervisor answered')
  const began = performance.now()
  const since = new Date().toISOString()
  const wantsTerminal = inside.tty ?? (isTerminal(0) && isTerminal(1))
  // A raw terminal needs a carriage return at the end of each line.
  const end = wantsTerminal && isTerminal(2) ? '\r\n' : '\n'
  const stopShowing =
    asking === undefined ? undefined : showHeld(project, asking, line => terminal.note(`pen: ${line}${end}`))
  const ending = await attach((whole, output) => executeOver(asked, whole, output), order, {
    input: inside.interactive === true || wantsTerminal || !isTerminal(0),
    terminal: wantsTerminal,
  })
  phase('command ended')
  for (const line of stopShowing?.() ?? []) terminal.note(`pen: ${line}`)
  // A command can exit with 124 by itself, but then it exits before the timeout.
  if (timeoutMs !== null && performance.now() - began >= timeoutMs && exitCodeOf(ending) === EXIT.timeout)
    terminal.note(`pen: the command timed out after ${showMillis(timeoutMs as Millis)} (--timeout)`)
  const code = exitCodeOf(ending)
  // Refusals matter only if the command failed. A supervisor of another version reports none.
  const asks = code !== EXIT.ok && refused !== undefined && ending.kind !== 'lost'
  const refusals = asks ? await requestRefusals(project.stateDir, refused) : undefined
  // If the supervisor has exited, the audit says which limit ended the sandbox.
  const isGone = code !== EXIT.ok && refusals === undefined && run !== undefined
  const lines = isGone ? await endedByLimit({ stateDir: project.stateDir, run, since }) : (refusals ?? [])
  if (refusals !== undefined || lines.length === 0) explain(ending, order, terminal)
  for (const line of lines) terminal.note(`pen: ${printable(line, 1024)}`)
  return code
}

/** Connects to the supervisor, and starts one if none runs. Retries, because a supervisor may exit in between. */
async function connect(project: Project, timeoutMs: number | null, terminal: Terminal): Promise<Reply> {
  const request = { want: 'exec', timeoutMs } as const
  for (let tries = 0; tries < 3; tries++) {
    const asked = await sendRequest(project.stateDir, request)
    if (asked !== undefined) return asked
    await ensureStarted(project, terminal)
  }
  throw new PenError('STATE', {
    what: 'the sandbox exited right after it started',
    hint: 'pen logs --all',
  })
}

/** Starts the sandbox if it is not running, with the flags of its last start. */
export const ensureStarted = (project: Project, terminal: Terminal): Promise<Started> =>
  withProgress('starting the sandbox', terminal, () =>
    startSandbox(project, {
      asked: { id: project.id, flags: {}, offline: false, allowUserExpansion: false },
      say: line => terminal.note(`pen: ${line}`),
      isAnnounced: true,
    }),
  )

/** The current directory, which has the same path inside, or the workspace if it is outside the project. */
function directoryOf({ project, cwd }: Inside): string {
  const here = project.cwd
  const { workspace } = project.world
  if (cwd !== undefined) return resolve(here, cwd)
  return here === workspace || here.startsWith(`${workspace}/`) ? here : workspace
}

/** Programs need these to draw on a terminal. No other variable of the host is passed without --env. */
const terminalName = ({ env }: Inside): { name: string; value: string }[] =>
  ['TERM', 'COLORTERM'].flatMap(name => {
    const value = env[name]
    return value === undefined || !/^[\w.+-]{1,64}$/.test(value) ? [] : [{ name, value }]
  })

function variable(text: string, env: Inside['env']): { name: string; value: string } {
  const at = text.indexOf('=')
  const name = at < 0 ? text : text.slice(0, at)
  const value = at < 0 ? env[name] : text.slice(at + 1)
  if (name === '' || /[^A-Za-z0-9_]/.test(name) || value === undefined)
    throw new PenError('USAGE', {
      what: value === undefined ? `${name} is not set` : `"${name}" is not the name of a variable`,
      at: '--env',
      hint: '--env NAME=VALUE, or --env NAME to pass your value',
    })
  return { name, value }
}

function explain(ending: ExecEnding, { argv }: Omit<ExecOrder, 'terminal'>, terminal: Terminal): void {
  if (ending.kind === 'lost') terminal.note('pen: the sandbox stopped while the command was running')
  const why = whyNotStarted(ending, argv)
  if (why !== undefined) terminal.note(`pen: ${why}`)
}
