/** The ports that `pen forward` and `pen open` name, and their forwards. */
import { PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { sendRequest } from '../../../control/client.ts'
import { takeValue } from '../../../control/messages.ts'
import type { PortPair } from '../../../gateway/forward/forward.ts'
import { parsePort } from '../../../policy/network/port.ts'
import type { ForwardedPort, OpenForwards } from '../../../run/forwards.ts'

/** `PORT` or `HOST_PORT:PORT`. */
export function readPair(text: string, verb: string): PortPair {
  const [first = '', second, ...more] = text.split(':')
  const guest = parsePort(second ?? first)
  const host = second !== undefined && first === '0' ? ({ ok: true, value: 0 } as const) : parsePort(first)
  const wrong = [guest, host].find(one => !one.ok)
  if (guest.ok && host.ok && more.length === 0) return { guest: guest.value, host: host.value }
  throw new PenError('USAGE', {
    what: `"${printable(text, 64)}": ${wrong?.ok === false ? wrong.why : 'at most one colon is allowed'}`,
    hint: `pen ${verb} 3000, or pen ${verb} 8080:3000`,
  })
}

/** The ports stay open until this process ends. `ended` resolves when the sandbox does. */
export async function openForward(
  stateDir: string,
  ports: readonly PortPair[],
): Promise<{ readonly ports: readonly ForwardedPort[]; readonly ended: Promise<void> }> {
  const asked = await sendRequest(stateDir, { want: 'forward', ports })
  if (asked === undefined) throw notRunning()
  const ended = new Promise<void>(resolve => asked.socket.attach({ data: () => undefined, closed: resolve }))
  return { ports: (takeValue(asked.answer) as Pick<OpenForwards, 'ports'>).ports, ended }
}

export const notRunning = (): PenError =>
  new PenError('STATE', { what: 'the sandbox of this project is not running', hint: 'pen start' })
