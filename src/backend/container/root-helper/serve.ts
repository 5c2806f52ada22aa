/**
 * The root helper: pen as root, for a supervisor that is not root. It is the only program of a container that the same
 * engine made. It does in the sandbox's namespaces what a root supervisor does itself: it starts pen's hidden modes
 * there, by descriptors that it receives. It takes orders only from the supervisor's socket, and ends with it. The
 * sandbox sees neither the socket nor the process. Its user may make any container already, so the helper adds no
 * privilege.
 */
import { closeSync } from 'node:fs'
import { EXIT, type ExitCode, PenError } from '../../../base/error.ts'
import { connectForDescriptors, receiveDescriptors } from '../../../base/kernel/pass-descriptors.ts'
import { enterMounts } from '../../../base/kernel/process.ts'
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

/** Resolves when the supervisor has disconnected. */
export function runRootHelper([place = '']: readonly string[]): Promise<ExitCode> {
  if (process.env['AGENT_IN_SANDBOX'] !== '1' || !place.startsWith('/'))
    throw new PenError('USAGE', { what: `${ROOT_HELPER_MODE} is not a verb: pen starts it by itself` })
  const descriptorSocket = connectForDescriptors(`${place}/${ROOT_HELPER_SOCKETS.descriptors}`)
  const orders = new MessageReader<RootHelperRequest>()
  return new Promise((resolve, reject) => {
    let outbox: Outbox | undefined
    const obey = async (channel: number, request: RootHelperRequest): Promise<void> => {
      const answer = await carryOut(request, descriptorSocket)
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

async function carryOut(request: RootHelperRequest, descriptorSocket: number): Promise<RootHelperAnswer> {
  const received = request.descriptors === 0 ? [] : receiveDescriptors(descriptorSocket)?.descriptors
  try {
    if (received?.length !== request.descriptors) return { failed: 'not all descriptors arrived' }
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
    case 'enter-host':
      // Enter the supervisor's view of the host's files. The container's image is not used any more.
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
