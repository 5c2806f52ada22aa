import { createReadStream } from 'node:fs'
import { EXIT, errnoOf, PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { hostPath, withBroker } from '../../frame/broker-connection.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'files put',
  summary: 'Inside a sandbox: write a granted file of the host',
  details:
    'The old content stays until the last byte has come. Directories are not made and nothing is removed. The file is never executable, unless the user granted that with --exec.',
  insideSandbox: 'allow',
  flags: {
    ...jsonFlag,
    exec: { kind: 'boolean', about: 'make it executable, where the grant says so' },
  },
  positionals: {
    from: { arity: 'one', about: 'a file in the sandbox, or - for stdin' },
    path: { arity: 'one', about: 'a path of the host' },
  },
  examples: [{ line: 'pen files put report.md /home/you/reports/report.md', does: 'new content for it' }],
  async run({ flags, positionals, env, terminal }) {
    const path = hostPath(positionals.path)
    const source = positionals.from === '-' ? process.stdin : createReadStream(positionals.from)
    try {
      const bytes = await withBroker(env, path, client => client.write(path, source, flags.exec))
      if (flags.json) terminal.printJson({ path, bytes })
      else terminal.print(`${printable(path)}: ${bytes} bytes`)
      return EXIT.ok
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === undefined) throw error
      throw new PenError('STATE', {
        what: `the content could not be read (${errno})`,
        at: positionals.from,
        hint: 'name a file that the sandbox may read',
        cause: error,
      })
    }
  },
})
