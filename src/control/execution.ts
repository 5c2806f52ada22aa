/** A command in a kept sandbox, as the client has it: an execution like the supervisor's own, over the control socket instead of the exec daemon's. */
import type { ExecOrder, ExecOutput, Execution } from '../backend/backend.ts'
import { DaemonExecution } from '../backend/daemon-execution.ts'
import { encodeOrder, type Order, type Report, ReportReader } from '../protocol/exec-messages.ts'
import { protocolError } from '../protocol/frame.ts'
import { CHANNEL } from './messages.ts'
import type { ControlStream } from './stream.ts'

export interface Opened {
  readonly socket: ControlStream
  /** What came behind the answer. */
  readonly rest: Uint8Array
}

export function executeOver({ socket, rest }: Opened, order: ExecOrder, output: ExecOutput): Execution {
  const reports = new ReportReader()
  const say = (said: Order): void => socket.send(encodeOrder(said))
  const execution = new DaemonExecution(CHANNEL, output, { order: say, room: () => socket.room() })
  const take = (report: Report): void => {
    if (report.kind === 'ready' || report.kind === 'full' || report.channel !== CHANNEL)
      throw protocolError('a report on something else')
    if (execution.hear(report)) socket.end()
  }
  const hear = (bytes: Uint8Array): void => {
    try {
      for (const report of reports.push(bytes)) take(report)
    } catch {
      // No supervisor of this version's: nothing more that it says counts.
      socket.destroy()
      execution.lose()
    }
  }
  socket.attach({ data: hear, closed: () => execution.lose() })
  const { argv, cwd, env, terminal, joined = false } = order
  say({ kind: 'exec', channel: CHANNEL, order: { argv, cwd, env, terminal, joined } })
  if (rest.length > 0) hear(rest)
  return execution
}
