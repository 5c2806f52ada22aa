import { closeSync, openSync, readSync } from 'node:fs'

/** About 400 sockets of each family. A sandbox can open thousands. */
const MOST_BYTES = 65_536
const MOST_PORTS = 32

/** Lines of `/proc/net/tcp`: number, local address and port, the other end, and the state 0A of a listener. */
const LISTENER = /^ *\d+: [0-9A-F]{8,32}:([0-9A-F]{4}) [0-9A-F]{8,32}:0000 0A /gm

/** The TCP ports on which programs listen, in the network namespace of a process. Numbers alone: a name could lie. */
export function listeningPorts(pid: number): readonly number[] {
  const ports = new Set<number>()
  for (const family of ['tcp', 'tcp6'])
    for (const [, port = ''] of headOf(`/proc/${pid}/net/${family}`).matchAll(LISTENER))
      ports.add(Number.parseInt(port, 16))
  return [...ports].sort((a, b) => a - b).slice(0, MOST_PORTS)
}

/** Empty when the process has ended, or the machine has no such family. */
function headOf(path: string): string {
  let fd: number | undefined
  try {
    fd = openSync(path, 'r')
    const bytes = Buffer.alloc(MOST_BYTES)
    let total = 0
    for (let n = 1; n > 0 && total < MOST_BYTES; total += n)
      n = readSync(fd, bytes, total, MOST_BYTES - total, null)
    return bytes.toString('latin1', 0, total)
  } catch {
    return ''
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}
