/**
 * The guest's first file system: BusyBox, the kernel modules that a sandbox needs, and a script. The script mounts the
 * exported tree and becomes the exec daemon. Nothing of the sandbox runs before that.
 */
import { DAEMON_MODE, PEN_INSIDE } from '../../protocol/guest-paths.ts'

/** The names under which QEMU offers the tree, the project in it, and the exec daemon's port. */
export const TREE_TAG = 'pen'
export const PROJECT_TAG = 'project'
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
  'virtio_net',
  'virtio-rng',
]

/**
 * The kernel passes `PEN_…` words of its command line as variables. A step that fails stops the guest, and the last
 * line on its console says why.
 */
const INIT = `#!/bin/busybox sh
export PATH=/bin
end() { echo "pen: the guest could not $1"; busybox poweroff -f; }
[ "$PEN_TRIAL" = 1 ] && echo '${ALIVE}' && busybox poweroff -f
busybox mount -t proc proc /proc
busybox mount -t sysfs sys /sys
busybox mount -t devtmpfs dev /dev
for module in /modules/*; do busybox insmod $module || end "load $module"; done
busybox mount -t virtiofs -o nosuid,nodev ${TREE_TAG} /root || end 'mount its files'
busybox mount -t virtiofs -o nosuid,nodev ${PROJECT_TAG} "/root$(busybox printf %b "$PEN_PROJECT")" || end 'mount the project'
busybox mount -t proc -o nosuid,nodev,noexec proc /root/proc || end 'mount /proc'
busybox mount -t devtmpfs -o nosuid,noexec dev /root/dev || end 'mount /dev'
busybox mkdir -p /root/dev/pts /root/dev/shm
busybox mount -t devpts -o nosuid,noexec,gid=5,mode=620,ptmxmode=666 devpts /root/dev/pts
busybox mount -t tmpfs -o nosuid,nodev,mode=1777 shm /root/dev/shm
busybox ln -s /proc/self/fd /root/dev/fd
for i in 0:stdin 1:stdout 2:stderr; do busybox ln -s /proc/self/fd/\${i%:*} /root/dev/\${i#*:}; done
busybox hostname pen
busybox ip link set lo up
if [ "$PEN_NETWORK" = 1 ]; then
  busybox ip addr add ${GUEST_NETWORK.guest} dev eth0 && busybox ip link set eth0 up &&
    busybox ip route add default via ${GUEST_NETWORK.gateway} || end 'set up its network'
fi
for port in /sys/class/virtio-ports/*; do
  [ "$(busybox cat $port/name)" = ${PORT_NAME} ] && device=/dev/\${port##*/}
done
[ -n "$device" ] || end 'find its port'
ulimit -u "$PEN_PROCESSES"
ulimit -n "$PEN_FILES"
cd /
exec busybox env -i AGENT_IN_SANDBOX=1 busybox switch_root /root ${PEN_INSIDE} ${DAEMON_MODE} port:$device
`

/** A path as one word of the kernel's command line, as the script reads it. */
export const kernelWord = (path: string): string =>
  [...new TextEncoder().encode(path)]
    .map(byte => {
      const text = String.fromCharCode(byte)
      return /[\w./-]/.test(text) ? text : `\\0${byte.toString(8).padStart(3, '0')}`
    })
    .join('')

export interface InitramfsParts {
  readonly busybox: Uint8Array
  /** In the order in which they are loaded. */
  readonly modules: readonly { readonly name: string; readonly bytes: Uint8Array }[]
}

export function buildInitramfs({ busybox, modules }: InitramfsParts): Uint8Array {
  const archive = new CpioArchive()
  for (const directory of ['bin', 'dev', 'proc', 'sys', 'root', 'modules']) archive.add(directory, DIRECTORY)
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
