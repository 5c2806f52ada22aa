/** One session of an SSH client: a command, a shell or a file transfer, as a command in the sandbox. */
import type { Writable } from 'node:stream'
import type { ServerChannel, Session } from 'ssh2'
import type { Execution } from '../backend/backend.ts'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import type { Project } from '../config/project.ts'
import { requestRefusals, sendRequest } from '../control/client.ts'
import { executeOver } from '../control/execution.ts'
import { takeValue } from '../control/messages.ts'
import { SANDBOX_HOME } from '../policy/profile.ts'
import type { ExecOrder, Variable } from '../protocol/exec-order.ts'
import { PEN_INSIDE, SFTP_MODE, SHELL_INSIDE } from '../protocol/guest-paths.ts'
import { endedByLimit } from '../run/ended-by-limit.ts'
import { exitCodeOf, whyNotStarted } from '../terminal/attach.ts'
import { TerminalFilter } from '../terminal/filter.ts'
import { isForwardable } from '../terminal/signals.ts'
import type { Attended } from './sandbox.ts'

interface Serving {
  readonly project: Project
  readonly sandbox: Attended
  /** Called with each session that runs something. */
  readonly began: (session: Promise<void>) => void
}

/** What `pen exec` passes too. Other variables of the host stay outside, whatever the user's `SendEnv` says. */
const PASSED = ['COLORTERM']
const PLAIN = /^[\w.+-]{1,64}$/

/** The types say that there always is one. A client that wants no reply brings none. */
const reply = (answer: (() => unknown) | undefined): void => void answer?.()

export function serveSession(session: Session, { project, sandbox, began }: Serving): void {
  const { stateDir, world } = project
  // As SSH servers do: editors and scp expect the home. A shell begins in the project.
  const home = sandbox.soft ? world.workspace : SANDBOX_HOME
  const variables: Variable[] = []
  let terminal: ExecOrder['terminal']
  let execution: Execution | undefined
  const run = (channel: ServerChannel, argv: readonly string[], cwd: string): void => {
    const order = { argv, cwd, env: variables, terminal }
    began(
      runOrder(channel, stateDir, order, started => {
        execution = started
      }),
    )
  }
  session.on('pty', (accept, _, { cols: columns, rows, term }) => {
    terminal = { columns, rows }
    if (PLAIN.test(term)) variables.push({ name: 'TERM', value: term })
    reply(accept)
  })
  session.on('env', (accept, reject, { key, val }) => {
    if (!PASSED.includes(key) || !PLAIN.test(val)) return reply(reject)
    variables.push({ name: key, value: val })
    reply(accept)
  })
  session.on('window-change', (accept, _, { cols, rows }) => {
    execution?.resize(cols, rows)
    reply(accept)
  })
  session.on('signal', (accept, reject, { name }) => {
    const signal = `SIG${name}`
    if (execution === undefined || !isForwardable(signal)) return reply(reject)
    execution.signal(signal)
    reply(accept)
  })
  session.on('shell', accept => run(accept(), [], world.workspace))
  session.on('exec', (accept, _, { command }) => run(accept(), [SHELL_INSIDE, '-c', command], home))
  session.on('subsystem', (accept, reject, { name }) => {
    if (name === 'sftp' && !sandbox.soft) run(accept(), [PEN_INSIDE, SFTP_MODE], home)
    else reject()
  })
}

async function runOrder(
  channel: ServerChannel,
  stateDir: string,
  order: ExecOrder,
  started: (execution: Execution) => void,
): Promise<void> {
  // The client may close the channel or hang up at any time.
  for (const stream of [channel, channel.stderr]) stream.on('error', () => undefined)
  const end = order.terminal === undefined ? '\n' : '\r\n'
  const say = (line: string): void => void channel.stderr.write(`pen: ${printable(line, 1024)}${end}`)
  let code: ExitCode = EXIT.pen
  try {
    code = await execute(channel, stateDir, order, { started, say })
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    say(`${error.message}${error.hint === undefined ? '' : `; fix: ${error.hint}`}`)
  }
  channel.exit(code)
  channel.end()
}

async function execute(
  channel: ServerChannel,
  stateDir: string,
  order: ExecOrder,
  { started, say }: { started(execution: Execution): void; say(line: string): void },
): Promise<ExitCode> {
  const since = new Date().toISOString()
  const asked = await sendRequest(stateDir, { want: 'exec', timeoutMs: null })
  if (asked === undefined)
    throw new PenError('STATE', { what: 'the sandbox stopped', hint: 'pen start --detach' })
  const { run, refused } = takeValue(asked.answer) as { readonly run: string; readonly refused: number }
  // A terminal obeys what the sandbox prints. Without one, bytes must pass as they are.
  const filter = order.terminal === undefined ? undefined : new TerminalFilter()
  const execution = executeOver(asked, order, (stream, bytes) =>
    put(stream === 'stderr' ? channel.stderr : channel, channel, filter?.push(bytes) ?? bytes),
  )
  started(execution)
  // A client that is gone is a hang-up, as for `pen exec`.
  channel.on('close', () => asked.socket.destroy())
  channel.on('data', (bytes: Buffer) => {
    channel.pause()
    void execution.write(bytes).then(() => channel.resume())
  })
  channel.on('end', () => execution.endInput())
  const ending = await execution.ended
  if (filter !== undefined) void put(channel, channel, filter.end())
  if (ending.kind === 'lost') say('the sandbox stopped while the command was running')
  const why = whyNotStarted(ending, order.argv)
  if (why !== undefined) say(why)
  const code = exitCodeOf(ending)
  if (code === EXIT.ok || channel.destroyed) return code
  const refusals = ending.kind === 'lost' ? undefined : await requestRefusals(stateDir, refused)
  for (const line of refusals ?? (await endedByLimit({ stateDir, run, since }))) say(line)
  return code
}

/** Waits for a client that does not read, but not for one that is gone. */
function put(to: Writable, channel: ServerChannel, bytes: Uint8Array): undefined | Promise<void> {
  // The bytes are in a buffer of the socket's.
  if (bytes.length === 0 || channel.destroyed || to.write(Buffer.from(bytes))) return undefined
  return new Promise(resolve => {
    const done = (): void => {
      to.off('drain', done)
      channel.off('close', done)
      resolve()
    }
    to.once('drain', done)
    channel.once('close', done)
  })
}
