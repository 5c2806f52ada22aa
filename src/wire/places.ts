/** Where pen's own things stand inside a container: one directory, bound read-only, and the binary in it. */
export const INSIDE = '/run/pen'
/** pen itself, for commands. */
export const AGENT_BINARY = `${INSIDE}/pen`
/** pen as the agent of a process sandbox starts it for a command: its own file, also where the sandbox has no name for it. */
export const AGENTS_OWN = '/proc/self/exe'
/** The word after `pen`. */
export const AGENT_MODE = '__agent'
/** Where the file broker listens, inside every sandbox. */
export const BROKER_SOCKET = `${INSIDE}/broker`
