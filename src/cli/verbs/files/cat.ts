import { hostPath, withBroker } from '../../frame/broker-connection.ts'
import { writeOut } from '../../frame/terminal.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'files cat',
  summary: 'Inside a sandbox: print a granted file',
  insideSandbox: 'allow',
  flags: {
    from: { kind: 'count', value: 'BYTE', about: 'first byte' },
    length: { kind: 'count', value: 'BYTES', about: 'maximum number of bytes' },
  },
  positionals: { path: { arity: 'one', about: 'a path on the host' } },
  json: false,
  examples: {
    'pen files cat /home/you/notes/todo.txt': 'print the whole file',
    'pen files cat --from 1024 --length 512 /home/you/data.bin': 'print 512 bytes of it',
  },
  async run({ flags, positionals, env }) {
    const path = hostPath(positionals.path)
    const range = { from: flags.from ?? 0, length: flags.length ?? null }
    await withBroker(env, path, client => client.read(path, () => writeOut, range))
  },
})
