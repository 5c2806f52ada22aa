/**
 * A machine whose kernel has no nf_tables: opening the packet filter's socket fails with "protocol not
 * supported".
 */

/** `socket(AF_NETLINK, *, NETLINK_NETFILTER)` fails with EPROTONOSUPPORT, for the command and its descendants. */
const FILTER = `
import ctypes, os, platform, struct, sys
socket = {'x86_64': 41, 'aarch64': 198}[platform.machine()]
load, equal, end = 0x20, 0x15, 0x06
code = [(load, 0, 0, 0), (equal, 0, 5, socket), (load, 0, 0, 16), (equal, 0, 3, 16), (load, 0, 0, 32),
        (equal, 0, 1, 12), (end, 0, 0, 0x50000 | 93), (end, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b''.join(struct.pack('HBBI', *line) for line in code))
libc = ctypes.CDLL(None, use_errno=True)
order = ctypes.create_string_buffer(struct.pack('HxxxxxxP', len(code), ctypes.addressof(program)))
libc.prctl(38, 1, 0, 0, 0)
if libc.prctl(22, 2, order) != 0: sys.exit('no filter: %d' % ctypes.get_errno())
os.execvp(sys.argv[1], sys.argv[1:])
`

/** Words before a command. */
export const WITHOUT_PACKET_FILTER: readonly string[] = ['/usr/bin/python3', '-c', FILTER]
