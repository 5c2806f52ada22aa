/** Makes every address local to a namespace, by the kernel's own messages: two programs fewer to start and to trust. */
import { ptr } from 'bun:ffi'
import { AF, CallFailed, libc, SOCK, succeeded } from '../base/libc.ts'

const SIOCSIFFLAGS = 0x8914
const IFF_UP = 0x1
const IFF_RUNNING = 0x40
/** In every namespace `lo` is the first interface. */
const LOOPBACK_INDEX = 1

const RTM_NEWROUTE = 24
const NLM_F_REQUEST = 0x1
const NLM_F_ACK = 0x4
const NLM_F_CREATE = 0x400
const NLM_F_EXCL = 0x200
const NLMSG_ERROR = 2
const RT_TABLE_LOCAL = 255
const RTPROT_BOOT = 3
const RT_SCOPE_HOST = 254
const RTN_LOCAL = 2
const RTA_OIF = 4

/** `ip link set lo up` */
export function raiseLoopback(): void {
  const fd = succeeded('socket', libc().socket(AF.inet, SOCK.dgram | SOCK.cloexec, 0))
  const request = new Uint8Array(40)
  request.set(new TextEncoder().encode('lo'))
  new DataView(request.buffer).setUint16(16, IFF_UP | IFF_RUNNING, true)
  try {
    succeeded('set lo up', libc().ioctl(fd, SIOCSIFFLAGS, ptr(request)))
  } finally {
    libc().close(fd)
  }
}

/** `ip route add local default dev lo`: whatever address is dialled, a listener of this namespace answers. */
export function makeEveryAddressLocal(family: typeof AF.inet | typeof AF.inet6): void {
  const fd = succeeded('socket', libc().socket(AF.netlink, SOCK.raw | SOCK.cloexec, 0))
  try {
    const message = newRoute(family)
    succeeded('send route', libc().send(fd, ptr(message), message.length, 0))
    const reply = new Uint8Array(1024)
    const size = succeeded('read route', libc().recv(fd, ptr(reply), reply.length, 0))
    const view = new DataView(reply.buffer)
    if (size < 20 || view.getUint16(4, true) !== NLMSG_ERROR) throw new CallFailed('route', 0)
    const errno = -view.getInt32(16, true)
    if (errno !== 0) throw new CallFailed('add local route', errno)
  } finally {
    libc().close(fd)
  }
}

/** `struct nlmsghdr`, `struct rtmsg` with a prefix of length 0, and one attribute: the interface. */
function newRoute(family: number): Uint8Array {
  const message = new Uint8Array(36)
  const view = new DataView(message.buffer)
  view.setUint32(0, message.length, true)
  view.setUint16(4, RTM_NEWROUTE, true)
  view.setUint16(6, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, true)
  message[16] = family
  message[20] = RT_TABLE_LOCAL
  message[21] = RTPROT_BOOT
  message[22] = RT_SCOPE_HOST
  message[23] = RTN_LOCAL
  view.setUint16(28, 8, true)
  view.setUint16(30, RTA_OIF, true)
  view.setUint32(32, LOOPBACK_INDEX, true)
  return message
}
