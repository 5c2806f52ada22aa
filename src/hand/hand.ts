/**
 * pen as root, for a keeper that is not: the only program of a container of its own, which the same engine made beside the
 * sandbox's. It does for its keeper what root's keeper does itself, in the sandbox's namespaces, by descriptors that it is
 * given: it starts pen's hidden modes there. It obeys one socket, that of the keeper, and ends with it. The sandbox sees
 * neither the socket nor the process. Its user may make any container: this one gives nobody a power that they had not.
 */
import { closeSync } from 'node:fs'
import { connectForDescriptors } from '../base/descriptor-socket.ts'
import { receiveDescriptors } from '../base/descriptors.ts'
import { enterMounts } from '../base/enter-mounts.ts'
import { EXIT, type ExitCode, PenError } from '../base/error.ts'
import { runWithDescriptors } from '../base/run-with-descriptors.ts'
import { listRefused } from '../gateway/door-refused.ts'
import { isAlive } from '../limits/cgroup-name.ts'
import { boundProcesses } from '../limits/engine-cgroup.ts'
import {
  encodeMessage,
  HAND_MODE,
  HAND_SOCKETS,
  type HandAnswer,
  type HandOrder,
  type HandRequest,
  MessageReader,
} from '../wire/hand-orders.ts'
import { Outbox } from '../wire/outbox.ts'

/** Resolves when the keeper is gone. */
export function runHand([place = '']: readonly string[]): Promise<ExitCode> {
  if (process.env['AGENT_IN_SANDBOX'] !== '1' || !place.startsWith('/'))
    throw new PenError('USAGE', { what: `${HAND_MODE} is not a verb: pen starts it by itself` })
  const over = connectForDescriptors(`${place}/${HAND_SOCKETS.descriptors}`)
  const orders = new MessageReader<HandRequest>()
  return new Promise((resolve, reject) => {
    let outbox: Outbox | undefined
    const obey = async (channel: number, request: HandRequest): Promise<void> => {
      const answer = await carryOut(request, over)
      outbox?.send(encodeMessage(channel, answer))
    }
    Bun.connect({
      unix: `${place}/${HAND_SOCKETS.orders}`,
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

async function carryOut(request: HandRequest, over: number): Promise<HandAnswer> {
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

async function act(order: HandOrder, descriptors: readonly number[]): Promise<unknown> {
  const [first = -1, second = -1] = descriptors
  switch (order.do) {
    case 'come':
      // The keeper's view of the host's files. The engine's image is left behind.
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
