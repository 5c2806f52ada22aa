import { EXIT, PenError } from '../../../base/error.ts'
import { printable, printableJson } from '../../../base/printable.ts'
import { findProject } from '../../../config/project.ts'
import { ask, takeValue } from '../../../control/client.ts'
import type { PortPair } from '../../../gateway/forward/forward.ts'
import { parsePort } from '../../../policy/network/port.ts'
import type { OpenForwards } from '../../../run/forwards.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'forward',
  summary: 'Let programs of this machine reach a server that runs in the sandbox of this project',
  details:
    'For a browser or an editor: pen listens on 127.0.0.1 and ::1 of this machine, for your own programs and for no other user, and passes each connection to the same port on the loopback of the sandbox. HOST_PORT:PORT listens on another port of this machine, 0:PORT on one that is free. It lasts until Ctrl-C, or until the sandbox ends. Whatever answers at the port is as little to be trusted as anything in the sandbox. For ports that are always to be there: ports in the config.',
  flags: jsonFlag,
  positionals: {
    port: { arity: 'many', about: 'a port in the sandbox, or HOST_PORT:PORT' },
  },
  examples: [
    { line: 'pen forward 3000', does: 'the server at port 3000 of the sandbox is at 127.0.0.1:3000 too' },
    { line: 'pen forward 8080:80 0:5173', does: 'two, one at another port, one at any that is free' },
    { line: 'pen forward --json 0:3000', does: 'which port it is, for a program' },
  ],
  async run({ flags, positionals, terminal }) {
    const pairs =
      positionals.port.length === 0 ? refuseNone() : await Promise.all(positionals.port.map(readPair))
    const asked = await ask(findProject().stateDir, { want: 'forward', ports: pairs })
    if (asked === undefined)
      throw new PenError('STATE', {
        what: 'the sandbox of this project does not run',
        hint: 'pen start starts it',
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
    terminal.note('the sandbox has ended, and its ports with it')
    return EXIT.ok
  },
})

const place = (address: string, port: number): string =>
  address.includes(':') ? `[${address}]:${port}` : `${address}:${port}`

function refuseNone(): never {
  throw new PenError('USAGE', { what: 'no port is named', hint: 'for example pen forward 3000' })
}

async function readPair(text: string): Promise<PortPair> {
  const [first = '', second, ...more] = text.split(':')
  const guest = parsePort(second ?? first)
  const host = second !== undefined && first === '0' ? ({ ok: true, value: 0 } as const) : parsePort(first)
  const wrong = [guest, host].find(one => !one.ok)
  if (guest.ok && host.ok && more.length === 0) return { guest: guest.value, host: host.value }
  throw new PenError('USAGE', {
    what: `"${printable(text, 64)}": ${wrong?.ok === false ? wrong.why : 'there is one colon at most'}`,
    hint: 'write PORT or HOST_PORT:PORT, as in 3000 or 8080:3000',
  })
}
