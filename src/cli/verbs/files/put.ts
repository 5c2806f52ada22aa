import { createReadStream } from 'node:fs'
import { EXIT, errnoOf, PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { hostPath, withBroker } from '../../frame/broker-connection.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'files put',
  summary: 'Inside a sandbox: write a granted file of the host',
  details:
    'Replaces the file atomically. Never creates directories or deletes files. The file is executable only if the grant has --exec.',
  insideSandbox: 'allow',
  flags: {
    exec: { kind: 'boolean', about: 'make it executable, if the grant has --exec' },
  },
  positionals: {
    from: { arity: 'one', about: 'a file in the sandbox, or - for stdin' },
    path: { arity: 'one', about: 'a path on the host' },
  },
  examples: {
    'pen files put report.md /home/you/reports/report.md': 'replace the content of this file',
  },
  async run({ flags, positionals, env, answer }) {
    const path = hostPath(positionals.path)
    const source = positionals.from === '-' ? process.stdin : createReadStream(positionals.from)
    try {
      const bytes = await withBroker(env, path, client => client.write(path, source, flags.exec))
      answer({ path, bytes }, `${printable(path)}: ${bytes} bytes`)
      return EXIT.ok
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === undefined) throw error
      throw new PenError('STATE', {
        what: `could not read the source (${errno})`,
        at: positionals.from,
        hint: 'choose a file that the sandbox can read',
        cause: error,
      })
    }
  },
})
