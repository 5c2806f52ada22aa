/** pen's own paths and names inside a sandbox, which both sides use. */
export const INSIDE = '/run/pen'
/** pen itself, for commands. */
export const PEN_INSIDE = `${INSIDE}/pen`
/**
 * The file of the running program. The exec daemon of a process sandbox starts pen by it, also when the sandbox has no
 * path for pen.
 */
export const PEN_ITSELF = '/proc/self/exe'
/** The word after `pen`. */
export const DAEMON_MODE = '__exec-daemon'
/** The word after `pen` for an SFTP server inside. */
export const SFTP_MODE = '__sftp'
/** As the first word of a command: the shell inside, bash or else sh. */
export const SHELL_INSIDE = '$SHELL'
/** The port of the gateway's proxy, in the door of every sandbox. Browsers and `fetch` do not block this port. */
export const PROXY_PORT = 1023
/** The socket of the file broker, inside every sandbox. */
export const BROKER_SOCKET = `${INSIDE}/broker`
/** In a virtual machine, `BROKER_SOCKET` is a link to this socket of the exec daemon. */
export const BROKER_IN_GUEST = '/dev/pen-broker'
/** Where the sandboxes of QEMU and virtiofsd have a kernel and what belongs to it. A guest sees an empty directory. */
export const MACHINE_FILES = '/run/pen.vm'

/** An empty file without permissions, in every process sandbox. Live mounts cover denied files with it. */
export const EMPTY_FILE = '/etc/.pen-nothing'
