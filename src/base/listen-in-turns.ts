/** Connections per turn. Others wait in the kernel until the event loop has done its other work. */
const MOST_IN_A_TURN = 64

export interface Stoppable {
  stop(): void
}

/**
 * Bun accepts connections as long as any are waiting, and runs nothing else. A sandbox that connects without end would
 * block all timeouts and stops of its supervisor. Only closing the listener interrupts Bun. So each listener accepts a
 * limited number, and `listen` then makes the next on a copy of the same descriptor. It calls `accepted` per connection.
 */
export function listenInTurns(listen: (accepted: () => void) => Stoppable): Stoppable {
  let count = 0
  let isStopped: boolean = false
  let listener: Stoppable | undefined
  const nextTurn = (): void => {
    count = 0
    if (!isStopped) listener ??= listen(accepted)
  }
  const accepted = (): void => {
    if (count++ === 0) setImmediate(nextTurn)
    if (count < MOST_IN_A_TURN) return
    listener?.stop()
    listener = undefined
  }
  listener = listen(accepted)
  return {
    stop: () => {
      isStopped = true
      listener?.stop()
    },
  }
}
