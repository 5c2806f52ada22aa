/** Connects the verbs of `pen files`, which run inside a sandbox, to the file broker on the host. */
import { PenError } from '../../base/error.ts'
import { resolve } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import { BrokerClient, FileRefused } from '../../guest/broker-client.ts'
import { BROKER_SOCKET } from '../../protocol/guest-paths.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** The project has the same path inside and on the host, so relative paths work. */
export const hostPath = (word: string): string => resolve(word)

export async function withBroker<T>(
  env: Environment,
  path: string | undefined,
  work: (client: BrokerClient) => Promise<T>,
): Promise<T> {
  const client = await BrokerClient.connect(BROKER_SOCKET)
  if (client === undefined) throw noBroker(env)
  try {
    return await work(client)
  } catch (error) {
    if (!(error instanceof FileRefused)) throw error
    const { reason, why, fix } = error.refusal
    throw new PenError('FILE_REFUSED', {
      what: `${printable(path ?? 'it')} was refused: ${printable(why)} (${printable(reason)})`,
      hint:
        fix === null
          ? (HINTS[reason] ?? 'ask the user to copy the file into the project')
          : `ask the user to run this on the host, outside the sandbox: ${printable(fix, 600)}`,
      cause: error,
    })
  } finally {
    client.close()
  }
}

const HINTS: Readonly<Record<string, string>> = {
  absent: 'pen files ls',
  busy: 'retry when other transfers are done',
  changed: 'retry',
  'bad-path': 'use the full path, as shown by pen files ls',
  directory: 'list it with pen files ls, and copy its files one by one',
}

function noBroker(env: Environment): PenError {
  const mark = env['AGENT_IN_SANDBOX']
  if (mark === undefined || mark === '' || mark === '0')
    return new PenError('USAGE', {
      what: 'pen files works inside a sandbox only',
      hint: 'on the host, use pen grant PATH',
    })
  if (env['SOFT_SANDBOX'] === 'true')
    return new PenError('STATE', {
      what: 'a soft sandbox has no file broker: its programs open files directly',
      hint: 'open the file itself; pen grant applies to file calls of the library and of pen mcp',
    })
  return new PenError('STATE', {
    what: 'this sandbox has no file broker',
    hint: 'ask the user to copy the file into the project',
  })
}
