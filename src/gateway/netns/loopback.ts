/** Makes every address local in the current namespace, over netlink. No external program is started or trusted. */
import { close } from '../../base/kernel/descriptor.ts'
import { MessageWriter, NETLINK, NLM_F, openNetlink, request } from '../../base/kernel/netlink.ts'
import { AF, SOCK } from '../../base/kernel/socket.ts'
import { succeeded, systemCall, tryCall } from '../../base/kernel/system-call.ts'

const SIOCSIFFLAGS = 0x8914
const IFF_UP = 0x1
const IFF_RUNNING = 0x40
/** `lo` is the first interface in every namespace. */
const LOOPBACK_INDEX = 1

const RTM_NEWROUTE = 24
const RT_TABLE_LOCAL = 255
const RTPROT_BOOT = 3
const RT_SCOPE_HOST = 254
const RTN_LOCAL = 2
const RTA_OIF = 4

/** `ip link set lo up` */
export function bringUpLoopback(): void {
  const fd = systemCall('socket', AF.inet, SOCK.dgram | SOCK.cloexec, 0)
  const request = new Uint8Array(40)
  request.set(new TextEncoder().encode('lo'))
  new DataView(request.buffer).setUint16(16, IFF_UP | IFF_RUNNING, true)
  try {
    succeeded('set lo up', tryCall('ioctl', fd, SIOCSIFFLAGS, request))
  } finally {
    close(fd)
  }
}

/** `ip route add local default dev lo`: a listener of this namespace answers every address. */
export function makeEveryAddressLocal(family: typeof AF.inet | typeof AF.inet6): void {
  const socket = openNetlink(NETLINK.route)
  try {
    request('add local route', socket, newRoute(family))
  } finally {
    close(socket)
  }
}

/** `struct rtmsg` with prefix length 0, and one attribute: the interface. */
function newRoute(family: number): Uint8Array {
  const to = new MessageWriter(64)
  to.message(RTM_NEWROUTE, NLM_F.request | NLM_F.ack | NLM_F.create | NLM_F.exclusive, 0, () => {
    to.raw([family, 0, 0, 0, RT_TABLE_LOCAL, RTPROT_BOOT, RT_SCOPE_HOST, RTN_LOCAL, 0, 0, 0, 0])
    to.bytes(RTA_OIF, [LOOPBACK_INDEX, 0, 0, 0])
  })
  return to.written()
}
