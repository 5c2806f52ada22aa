import { PenError } from '../../../base/error.ts'
import { printable, printableJson } from '../../../base/printable.ts'
import { sendRequest } from '../../../control/client.ts'
import { takeValue } from '../../../control/messages.ts'
import type { PortPair } from '../../../gateway/forward/forward.ts'
import { parsePort } from '../../../policy/network/port.ts'
import type { OpenForwards } from '../../../run/forwards.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'forward',
  summary: 'Forward a port of this machine into the sandbox',
  details:
    'pen listens on 127.0.0.1 and ::1, for your own programs only, and forwards to the same port inside. HOST_PORT:PORT listens on another port, 0:PORT on a free one. Runs until Ctrl-C or until the sandbox stops. Do not trust the server: it runs in the sandbox. For permanent ports, set ports in the config.',
  positionals: {
    port: { arity: 'many', about: 'a port in the sandbox, or HOST_PORT:PORT' },
  },
  examples: {
    'pen forward 3000': 'reach port 3000 of the sandbox at 127.0.0.1:3000',
    'pen forward 8080:80 0:5173': 'forward two ports, to 8080 and to a free port',
    'pen forward --json 0:3000': 'print the chosen port as JSON',
  },
  async run({ flags, positionals, terminal, project }) {
    if (positionals.port.length === 0)
      throw new PenError('USAGE', { what: 'no port given', hint: 'pen forward 3000' })
    const pairs = positionals.port.map(readPair)
    const asked = await sendRequest(project.stateDir, { want: 'forward', ports: pairs })
    if (asked === undefined)
      throw new PenError('STATE', {
        what: 'the sandbox of this project is not running',
        hint: 'pen start',
      })
    const ended = new Promise<void>(resolve =>
      asked.socket.attach({ data: () => undefined, closed: resolve }),
    )
    const { ports } = takeValue(asked.answer) as Pick<OpenForwards, 'ports'>
    if (flags.json) terminal.print(printableJson({ version: 1, ports }))
    else
      for (const { guest, host, addresses } of ports)
        terminal.print(
          `${addresses.map(address => place(address, host)).join(' and ')} → port ${guest} of the sandbox; Ctrl-C ends it`,
        )
    await ended
    terminal.note('the sandbox stopped; its ports are closed')
  },
})

const place = (address: string, port: number): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`

function readPair(text: string): PortPair {
  const [first = '', second, ...more] = text.split(':')
  const guest = parsePort(second ?? first)
  const host = second !== undefined && first === '0' ? ({ ok: true, value: 0 } as const) : parsePort(first)
  const wrong = [guest, host].find(one => !one.ok)
  if (guest.ok && host.ok && more.length === 0) return { guest: guest.value, host: host.value }
  throw new PenError('USAGE', {
    what: `"${printable(text, 64)}": ${wrong?.ok === false ? wrong.why : 'at most one colon is allowed'}`,
    hint: 'pen forward 3000, or pen forward 8080:3000',
  })
}
