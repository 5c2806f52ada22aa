/** Where pen's own things stand inside a container: one directory, bound read-only, and the binary in it. */
export const INSIDE = '/run/pen'
/** pen itself, for commands. */
export const AGENT_BINARY = `${INSIDE}/pen`
/** The word after `pen`. */
export const AGENT_MODE = '__agent'
/** Where the file broker listens, inside every sandbox. */
export const BROKER_SOCKET = `${INSIDE}/broker`
