/** A command in the sandbox of a project, on this terminal or in this pipeline. Where none runs, one is started first. */
import type { ExecEnding, ExecOrder } from '../../backend/backend.ts'
import { EXIT, type ExitCode, PenError } from '../../base/error.ts'
import { phase } from '../../base/phases.ts'
import { resolve } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import { type Millis, showMillis } from '../../base/quantity.ts'
import type { Project } from '../../config/project.ts'
import { type Asked, ask, askForRefusals, takeValue } from '../../control/client.ts'
import { executeOver } from '../../control/execution.ts'
import type { EndedRun } from '../../run/ended-by-limit.ts'
import { attach, exitCodeOf, whyNotStarted } from '../../terminal/attach.ts'
import { isTerminal } from '../../terminal/termios.ts'
import type { Terminal } from './terminal.ts'

export interface Inside {
  readonly project: Project
  /** Empty: a shell. */
  readonly command: readonly string[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly terminal: Terminal
  readonly variables?: readonly string[]
  readonly cwd?: string | undefined
  readonly timeout?: Millis | undefined
  readonly interactive?: boolean
  readonly tty?: boolean
}

/** What the supervisor says before the command begins. */
interface Granted {
  readonly timeoutMs: number | null
  /** The run, where connections may wait for a person. */
  readonly asking?: string
  readonly run?: string
  /** How many refusals there were by then. */
  readonly refused?: number
}

export async function execInside(inside: Inside): Promise<ExitCode> {
  const { project, command, terminal, timeout } = inside
  const order: Omit<ExecOrder, 'terminal'> = {
    argv: command,
    cwd: directoryOf(inside),
    env: [...terminalName(inside), ...(inside.variables ?? []).map(text => variable(text, inside.env))],
  }
  const asked = await reach(project, timeout ?? null, terminal)
  const { timeoutMs, asking, run, refused } = takeValue(asked.answer) as Granted
  if (timeout !== undefined && timeoutMs !== null && timeoutMs < timeout)
    terminal.note(`pen: --timeout is cut to exec.ceiling, ${showMillis(timeoutMs as Millis)}`)
  phase('supervisor answered')
  const began = performance.now()
  const since = new Date().toISOString()
  const wantsTerminal = inside.tty ?? (isTerminal(0) && isTerminal(1))
  const endTelling = asking === undefined ? undefined : await tellWhatWaits(inside, asking, wantsTerminal)
  const ending = await attach((whole, output) => executeOver(asked, whole, output), order, {
    input: inside.interactive === true || wantsTerminal || !isTerminal(0),
    terminal: wantsTerminal,
  })
  phase('command ended')
  for (const line of endTelling?.() ?? []) terminal.note(`pen: ${line}`)
  // A command that ends by itself with this very code has done so before.
  if (timeoutMs !== null && performance.now() - began >= timeoutMs && exitCodeOf(ending) === EXIT.timeout)
    terminal.note(`pen: the command was ended after ${showMillis(timeoutMs as Millis)}, its --timeout`)
  const code = exitCodeOf(ending)
  // One that went well needed nothing else, and a supervisor of another version says nothing of it.
  const asks = code !== EXIT.ok && refused !== undefined && ending.kind !== 'lost'
  const told = asks ? await askForRefusals(project.stateDir, refused) : undefined
  // A supervisor that is gone has left in the audit what ended it.
  const ended = code !== EXIT.ok && told === undefined && run !== undefined
  const lines = ended ? await limitsOf({ stateDir: project.stateDir, run, since }) : (told ?? [])
  if (told !== undefined || lines.length === 0) explain(ending, order, terminal)
  for (const line of lines) terminal.note(`pen: ${printable(line, 1024)}`)
  return code
}

async function limitsOf(ended: EndedRun): Promise<readonly string[]> {
  const { endedByLimit } = await import('../../run/ended-by-limit.ts')
  return await endedByLimit(ended)
}

/** On a terminal that is raw meanwhile a line has to go back to its beginning by itself. */
async function tellWhatWaits(
  { project, terminal }: Inside,
  run: string,
  isRaw: boolean,
): Promise<() => string[]> {
  const { tellHeld } = await import('../render/held-lines.ts')
  const end = isRaw && isTerminal(2) ? '\r\n' : '\n'
  return tellHeld(project, run, line => terminal.note(`pen: ${line}${end}`))
}

/** A supervisor may end between two looks: then another one is started, and asked. */
async function reach(project: Project, timeoutMs: number | null, terminal: Terminal): Promise<Asked> {
  const request = { want: 'exec', timeoutMs } as const
  for (let tries = 0; tries < 3; tries++) {
    const asked = await ask(project.stateDir, request)
    if (asked !== undefined) return asked
    const { whileTelling } = await import('./progress.ts')
    const { startSandbox } = await import('../../lifecycle/start.ts')
    const order = { id: project.id, flags: {}, offline: false, allowUserExpansion: false }
    await whileTelling('starting the sandbox', terminal, () =>
      startSandbox(project, {
        asked: order,
        say: line => terminal.note(`pen: ${line}`),
        isAnnounced: true,
      }),
    )
  }
  throw new PenError('STATE', {
    what: 'the sandbox ends as soon as it is started',
    hint: 'pen logs --all tells what ended it',
  })
}

/** The same directory as here, which has the same name inside; outside of the project there is only its root. */
function directoryOf({ project, cwd }: Inside): string {
  const here = project.cwd
  const { workspace } = project.world
  if (cwd !== undefined) return resolve(here, cwd)
  return here === workspace || here.startsWith(`${workspace}/`) ? here : workspace
}

/** What a program must know to draw on a terminal; nothing else of the host's environment goes inside by itself. */
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
      what: value === undefined ? `${name} is not set here` : `"${name}" is not the name of a variable`,
      at: '--env',
      hint: 'write --env NAME=VALUE, or --env NAME to pass on yours',
    })
  return { name, value }
}

function explain(ending: ExecEnding, { argv }: Omit<ExecOrder, 'terminal'>, terminal: Terminal): void {
  if (ending.kind === 'lost') terminal.note('pen: the sandbox ended before the command did')
  const why = whyNotStarted(ending, argv)
  if (why !== undefined) terminal.note(`pen: ${why}`)
}
