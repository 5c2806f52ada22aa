/** Where pen's own things stand inside a container: one directory, bound read-only, and the binary in it. */
export const INSIDE = '/run/pen'
/** pen itself, as the agent. */
export const AGENT_BINARY = `${INSIDE}/pen`
/** The agent connects to it once; then it is gone. */
export const AGENT_SOCKET = `${INSIDE}/agent`
/** An empty file that nobody may open: what denied files are covered with. */
export const AGENT_NOTHING = `${INSIDE}/nothing`
/** The word after `pen`. */
export const AGENT_MODE = '__agent'
/** Where the file broker listens, inside every sandbox. */
export const BROKER_SOCKET = `${INSIDE}/broker`
