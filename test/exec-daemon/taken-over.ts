/** A compromised exec daemon, as the supervisor meets it. */
import { DaemonLink } from '../../src/backend/daemon-link.ts'
import { adoptDaemonSocket } from '../../src/backend/daemon-socket.ts'
import { encodeReport, type Order, OrderReader, type Report } from '../../src/protocol/exec-messages.ts'
import { Outbox } from '../../src/protocol/outbox.ts'
import { pair, SETUP } from './exec-daemon.ts'

/** It receives orders, and sends what the test wants. */
export async function takenOver() {
  const [ours, theirs] = pair()
  const heard: Order[] = []
  const orders = new OrderReader()
  const end = adoptDaemonSocket(theirs)
  const outbox = new Outbox(bytes => end.write(bytes))
  end.listen({
    data: bytes => heard.push(...Array.from(orders.push(bytes), order => structuredClone(order))),
    drain: () => outbox.drain(),
    close: () => outbox.close(),
  })
  const link = new DaemonLink(adoptDaemonSocket(ours), SETUP)
  const say = (...reports: (Report | Uint8Array)[]) => {
    for (const report of reports) outbox.send(report instanceof Uint8Array ? report : encodeReport(report))
  }
  say({ kind: 'ready' })
  await link.ready
  return { link, heard, say }
}
