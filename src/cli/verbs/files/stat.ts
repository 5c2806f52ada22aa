import { printable } from '../../../base/printable.ts'
import { hostPath, withBroker } from '../../frame/broker-connection.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'files stat',
  summary: 'Inside a sandbox: show kind, size and time of a granted file',
  insideSandbox: 'allow',
  positionals: { path: { arity: 'one', about: 'a path on the host' } },
  examples: {
    'pen files stat /home/you/notes/todo.txt': 'show whether it exists, and its size',
  },
  async run({ positionals, env, answer }) {
    const path = hostPath(positionals.path)
    const facts = await withBroker(env, path, client => client.stat(path))
    answer(
      { path, ...facts },
      `${printable(path)}: ${facts.kind}, ${facts.size} bytes, ${facts.writable ? 'read and write' : 'read only'}, changed ${new Date(facts.modified).toISOString()}`,
    )
  },
})
