/**
 * pen as root, for a supervisor that is not: the only program of a container of its own, which the same engine made beside the
 * sandbox's. It does for its supervisor what root's supervisor does itself, in the sandbox's namespaces, by descriptors that it is
 * given: it starts pen's hidden modes there. It obeys one socket, that of the supervisor, and ends with it. The sandbox sees
 * neither the socket nor the process. Its user may make any container: this one gives nobody a power that they had not.
 */
import { closeSync } from 'node:fs'
import { EXIT, type ExitCode, PenError } from '../../../base/error.ts'
import { connectForDescriptors } from '../../../base/kernel/descriptor-socket.ts'
import { enterMounts } from '../../../base/kernel/enter-mounts.ts'
import { receiveDescriptors } from '../../../base/kernel/pass-descriptors.ts'
import { isAlive } from '../../../base/kernel/processes.ts'
import { runWithDescriptors } from '../../../base/kernel/run-with-descriptors.ts'
import { listRefused } from '../../../gateway/netns/refused.ts'
import { boundProcesses } from '../../../limits/engine-cgroup.ts'
import { Outbox } from '../../../protocol/outbox.ts'
import {
  encodeMessage,
  MessageReader,
  ROOT_HELPER_MODE,
  ROOT_HELPER_SOCKETS,
  type RootHelperAnswer,
  type RootHelperOrder,
  type RootHelperRequest,
} from '../../../protocol/root-helper-orders.ts'

/** Resolves when the supervisor is gone. */
export function runRootHelper([place = '']: readonly string[]): Promise<ExitCode> {
  if (process.env['AGENT_IN_SANDBOX'] !== '1' || !place.startsWith('/'))
    throw new PenError('USAGE', { what: `${ROOT_HELPER_MODE} is not a verb: pen starts it by itself` })
  const over = connectForDescriptors(`${place}/${ROOT_HELPER_SOCKETS.descriptors}`)
  const orders = new MessageReader<RootHelperRequest>()
  return new Promise((resolve, reject) => {
    let outbox: Outbox | undefined
    const obey = async (channel: number, request: RootHelperRequest): Promise<void> => {
      const answer = await carryOut(request, over)
      outbox?.send(encodeMessage(channel, answer))
    }
    Bun.connect({
      unix: `${place}/${ROOT_HELPER_SOCKETS.orders}`,
      socket: {
        open: socket => {
          outbox = new Outbox(bytes => socket.write(bytes))
        },
        data: (_, bytes) => {
          try {
            for (const { channel, message } of orders.push(bytes)) obey(channel, message).catch(reject)
          } catch (error) {
            reject(error)
          }
        },
        drain: () => outbox?.drain(),
        close: () => resolve(EXIT.ok),
        error: () => resolve(EXIT.ok),
      },
    }).catch(reject)
  })
}

async function carryOut(request: RootHelperRequest, over: number): Promise<RootHelperAnswer> {
  const received = request.descriptors === 0 ? [] : receiveDescriptors(over)?.descriptors
  try {
    if (received?.length !== request.descriptors) return { failed: 'not all descriptors came' }
    return { done: await act(request, received) }
  } catch (error) {
    return { failed: error instanceof Error ? error.message : String(error) }
  } finally {
    for (const fd of received ?? []) closeSync(fd)
  }
}

async function act(order: RootHelperOrder, descriptors: readonly number[]): Promise<unknown> {
  const [first = -1, second = -1] = descriptors
  switch (order.do) {
    case 'come':
      // The supervisor's view of the host's files. The engine's image is left behind.
      enterMounts(first, second)
      return null
    case 'run':
      return await runWithDescriptors(order.argv, { ...order, descriptors })
    case 'list-refused':
      return listRefused(first)
    case 'kill':
      if (isAlive(order)) process.kill(order.pid, 'SIGKILL')
      return null
    case 'bound-processes':
      return boundProcesses(order.pid, order.pids)
  }
}
