/** Where pen's own things stand inside a sandbox: names and places that both sides know. */
export const INSIDE = '/run/pen'
/** pen itself, for commands. */
export const PEN_INSIDE = `${INSIDE}/pen`
/** pen as the exec daemon of a process sandbox starts it for a command: its own file, also where the sandbox has no name for it. */
export const PEN_ITSELF = '/proc/self/exe'
/** The word after `pen`. */
export const DAEMON_MODE = '__exec-daemon'
/** Where the gateway's proxy listens, in the door of every sandbox. Not one of the ports that browsers and `fetch` refuse to speak to. */
export const PROXY_PORT = 1023
/** Where the file broker listens, inside every sandbox. */
export const BROKER_SOCKET = `${INSIDE}/broker`
