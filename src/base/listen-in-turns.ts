/** More wait in the kernel, until everything else that is due has had its turn. */
const MOST_IN_A_TURN = 64

export interface Stoppable {
  stop(): void
}

/**
 * The runtime accepts for as long as somebody waits, and does nothing else meanwhile: a sandbox that connects without end would
 * keep its supervisor from every timeout and every stop. Only a listener that is gone stops it, so each has a turn, and then comes the
 * next. `listen` makes one, on a copy of the same descriptor, and tells of each connection that it has accepted.
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
