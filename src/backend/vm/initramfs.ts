/**
 * The guest's first file system: BusyBox, the kernel modules that a sandbox needs, and a script. The script becomes the
 * exec daemon, which waits for the sandbox's files. Nothing of the sandbox runs before that.
 */
import { DAEMON_MODE } from '../../protocol/guest-paths.ts'
import { DAEMON, DAEMON_LOADER } from './daemon-disk.ts'

/** The name under which QEMU offers the exec daemon's port. */
export const PORT_NAME = 'pen'

/**
 * The addresses of QEMU's user network. `gateway` is the loopback of the door's network namespace. The guest learns its
 * IPv6 address from QEMU.
 */
export const GUEST_NETWORK = { guest: '10.0.2.15/24', gateway: '10.0.2.2' }

/** What a guest prints that was booted only to see whether it boots. */
export const ALIVE = 'pen: alive'

/** The modules to load. The modules that they need are loaded before them. */
export const MODULES: readonly string[] = [
  'virtio_pci',
  'virtio_console',
  'virtiofs',
  'virtio_blk',
  'erofs',
  'virtio_net',
  'virtio-rng',
  'virtio_balloon',
  // For commands that are root of the guest.
  'overlay',
  'tun',
]

/**
 * The kernel passes `PEN_…` words of its command line as variables. A step that fails stops the guest, and the last
 * line on its console says why. Everything here is the same for every sandbox.
 */
const INIT = `#!/bin/busybox sh
export PATH=/bin
end() { echo "pen: the guest could not $1"; busybox poweroff -f; }
[ "$PEN_TRIAL" = 1 ] && echo '${ALIVE}' && busybox poweroff -f
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
for module in /modules/*; do busybox insmod $module || end "load $module"; done
busybox mount -t erofs -o ro,nosuid,nodev /dev/vda /pen || end 'mount the exec daemon'
busybox mkdir /dev/pts /dev/shm
busybox ln -s /proc/self/fd /dev/fd
for i in 0:stdin 1:stdout 2:stderr; do busybox ln -s /proc/self/fd/\${i%:*} /dev/\${i#*:}; done
busybox hostname pen
busybox ip link set lo up
if [ "$PEN_NETWORK" = 1 ]; then
  busybox ip addr add ${GUEST_NETWORK.guest} dev eth0 && busybox ip link set eth0 up &&
    busybox ip route add default via ${GUEST_NETWORK.gateway} || end 'set up its network'
  # A forwarded port is one of the guest's loopback.
  echo 1 >/proc/sys/net/ipv4/conf/eth0/route_localnet
fi
# QEMU names its ports in messages, which may come late.
tries=0
until device=$(busybox grep -lx ${PORT_NAME} /sys/class/virtio-ports/*/name 2>/dev/null); do
  [ $((tries += 1)) -le 60 ] && busybox sleep 1 || end 'find its port'
done
device=/dev/$(busybox basename \${device%/name})
busybox rm -r /modules /init
exec busybox env -i AGENT_IN_SANDBOX=1 /pen/${DAEMON_LOADER} --library-path /pen /pen/${DAEMON} ${DAEMON_MODE} port:$device
`

export interface InitramfsParts {
  readonly busybox: Uint8Array
  /** In the order in which they are loaded. */
  readonly modules: readonly { readonly name: string; readonly bytes: Uint8Array }[]
}

export function buildInitramfs({ busybox, modules }: InitramfsParts): Uint8Array {
  const archive = new CpioArchive()
  for (const directory of ['bin', 'dev', 'proc', 'sys', 'root', 'pen', 'modules'])
    archive.add(directory, DIRECTORY)
  archive.add('bin/busybox', PROGRAM, busybox)
  archive.add('init', PROGRAM, new TextEncoder().encode(INIT))
  for (const [i, { name, bytes }] of modules.entries())
    archive.add(`modules/${String(i).padStart(2, '0')}-${name}`, PROGRAM, bytes)
  return archive.end()
}

/** Changes when the archive of the same parts would be another. */
export const INITRAMFS_VERSION = Bun.hash(INIT).toString(16)

const DIRECTORY = 0o040755
const PROGRAM = 0o100755
const NOTHING = new Uint8Array()

/** The `newc` format of cpio, which the kernel reads. */
class CpioArchive {
  readonly #pieces: Uint8Array[] = []
  #entries = 0

  add(name: string, mode: number, bytes: Uint8Array = NOTHING): void {
    const path = new TextEncoder().encode(`${name}\0`)
    // inode, mode, uid, gid, links, mtime, size, device, device, of device, of device, name's length, checksum
    const fields = [++this.#entries, mode, 0, 0, 1, 0, bytes.length, 0, 0, 0, 0, path.length, 0]
    const header = `070701${fields.map(field => field.toString(16).padStart(8, '0')).join('')}`
    this.#push(Buffer.concat([Buffer.from(header), path]))
    this.#push(bytes)
  }

  end(): Uint8Array {
    this.add('TRAILER!!!', 0)
    return Buffer.concat(this.#pieces)
  }

  #push(bytes: Uint8Array): void {
    this.#pieces.push(bytes, new Uint8Array((4 - (bytes.length % 4)) % 4))
  }
}

/** The other modules that a module needs, as its file says. */
export function neededModules(module: Uint8Array): readonly string[] {
  const text = Buffer.from(module).toString('latin1')
  const [, names = ''] = /\0depends=([A-Za-z0-9_,-]*)\0/.exec(text) ?? []
  return names === '' ? [] : names.split(',')
}
