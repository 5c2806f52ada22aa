/** What the verbs of `pen files` share: they run inside a sandbox and ask the broker on the host. */
import { PenError } from '../../base/error.ts'
import { resolve } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import type { BrokerClient } from '../../guest/broker-client.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Names the host's own path: the project has the same one on both sides. */
export const hostPath = (word: string): string => resolve(word)

export async function withBroker<T>(
  env: Environment,
  path: string | undefined,
  work: (client: BrokerClient) => Promise<T>,
): Promise<T> {
  const { BrokerClient, FileRefused } = await import('../../guest/broker-client.ts')
  const { BROKER_SOCKET } = await import('../../protocol/guest-paths.ts')
  const client = await BrokerClient.connect(BROKER_SOCKET)
  if (client === undefined) throw nobodyThere(env)
  try {
    return await work(client)
  } catch (error) {
    if (!(error instanceof FileRefused)) throw error
    const { reason, why, fix } = error.refusal
    throw new PenError('FILE_REFUSED', {
      what: `${printable(path ?? 'it')} was refused: ${printable(why)} (${printable(reason)})`,
      hint:
        fix === null
          ? (HINTS[reason] ?? 'no command changes that: ask the user of this machine for the file itself')
          : `ask the user to run this on the host, outside the sandbox: ${printable(fix, 600)}`,
      cause: error,
    })
  } finally {
    client.close()
  }
}

const HINTS: Readonly<Record<string, string>> = {
  absent: 'pen files ls shows what is there',
  busy: 'try again when other transfers are done',
  changed: 'try again',
  'bad-path': 'write the whole path, as pen files ls shows it',
  directory: 'pen files ls lists a directory; files are copied one by one',
}

function nobodyThere(env: Environment): PenError {
  const mark = env['AGENT_IN_SANDBOX']
  if (mark === undefined || mark === '' || mark === '0')
    return new PenError('USAGE', {
      what: 'pen files is for inside a sandbox, and this is none',
      hint: 'on the host, pen grant PATH lets the sandboxes of a project ask for that file',
    })
  if (env['SOFT_SANDBOX'] === 'true')
    return new PenError('STATE', {
      what: 'a soft sandbox has no file broker: no kernel keeps its programs from files, so there is nothing to hand out',
      hint: 'open the file itself; pen grant is for file calls of the library and of pen mcp, which go through the gate',
    })
  return new PenError('STATE', {
    what: 'no file broker listens for this sandbox',
    hint: 'this sandbox has none; ask the user for the file itself',
  })
}
