/** A command in a kept sandbox, as the client has it: an execution like the keeper's own, over the control socket instead of the agent's. */
import { AgentExecution } from '../backend/agent-execution.ts'
import type { ExecOrder, ExecOutput, Execution } from '../backend/backend.ts'
import { encodeOrder, type Order, type Report, ReportReader } from '../wire/exec-messages.ts'
import { wireError } from '../wire/frame.ts'
import { CHANNEL } from './control-messages.ts'
import type { ControlStream } from './control-stream.ts'

export interface Opened {
  readonly socket: ControlStream
  /** What came behind the answer. */
  readonly rest: Uint8Array
}

export function executeOver({ socket, rest }: Opened, order: ExecOrder, output: ExecOutput): Execution {
  const reports = new ReportReader()
  const say = (said: Order): void => socket.send(encodeOrder(said))
  const execution = new AgentExecution(CHANNEL, output, { order: say, room: () => socket.room() })
  const take = (report: Report): void => {
    if (report.kind === 'ready' || report.kind === 'full' || report.channel !== CHANNEL)
      throw wireError('a report on something else')
    if (execution.hear(report)) socket.end()
  }
  const hear = (bytes: Uint8Array): void => {
    try {
      for (const report of reports.push(bytes)) take(report)
    } catch {
      // No keeper of this version's: nothing more that it says counts.
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
