import { PenError } from '../../../base/error.ts'
import { printableJson } from '../../../base/printable.ts'
import { defineVerb } from '../../frame/verb.ts'
import { openForward, readPair } from './open-forward.ts'

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
    const pairs = positionals.port.map(text => readPair(text, 'forward'))
    const { ports, ended } = await openForward(project.stateDir, pairs)
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
