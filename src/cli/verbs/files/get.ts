import { closeSync, fchmodSync, openSync, renameSync, rmSync, statSync } from 'node:fs'
import { EXIT, errnoText, PenError } from '../../../base/error.ts'
import { basename, join, resolve } from '../../../base/posix-path.ts'
import { printable } from '../../../base/printable.ts'
import { writeAll } from '../../../base/write-all.ts'
import { hostPath, withBroker } from '../../frame/broker-connection.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'files get',
  summary: 'Inside a sandbox: copy a granted file into the sandbox',
  details: 'The copy is atomic. With --exec in the grant it stays executable.',
  insideSandbox: 'allow',
  positionals: {
    path: { arity: 'one', about: 'a path on the host' },
    to: { arity: 'optional', about: 'the target (default: the same name in the current directory)' },
  },
  examples: {
    'pen files get /home/you/data.csv': 'copy it to ./data.csv',
  },
  async run({ positionals, env, answer }) {
    const path = hostPath(positionals.path)
    const to = targetOf(path, positionals.to ?? '.')
    const draft = `${to}.${crypto.randomUUID()}.tmp`
    let fd: number | undefined
    try {
      const bytes = await withBroker(env, path, client =>
        client.read(path, facts => {
          const file = onTarget(draft, () => openSync(draft, 'wx', 0o644))
          fd = file
          if (facts.executable) fchmodSync(file, 0o755)
          return piece => onTarget(to, () => writeAll(file, piece))
        }),
      )
      onTarget(to, () => renameSync(draft, to))
      answer({ path, to, bytes }, `${printable(to)}: ${bytes} bytes`)
      return EXIT.ok
    } finally {
      if (fd !== undefined) closeSync(fd)
      rmSync(draft, { force: true })
    }
  },
})

function targetOf(path: string, to: string): string {
  const isDirectory = statSync(to, { throwIfNoEntry: false })?.isDirectory() === true
  return resolve(isDirectory ? join(to, basename(path)) : to)
}

/** Reports an error of the sandbox's own file system, such as a full disk. */
function onTarget<T>(path: string, act: () => T): T {
  try {
    return act()
  } catch (error) {
    throw new PenError('STATE', {
      what: `could not write the copy (${errnoText(error)})`,
      at: path,
      hint: 'choose a target that the sandbox can write, with enough free space',
      cause: error,
    })
  }
}
