/** Signals that reach us and are meant for a command elsewhere. One that is stopped hears of none before SIGCONT. */
const PASSED = ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGCONT'] as const

/** For as long as the command runs; returns what undoes it. */
export function forwardSignals(send: (signal: NodeJS.Signals) => void): () => void {
  const handlers = PASSED.map(signal => [signal, () => send(signal)] as const)
  for (const [signal, handler] of handlers) process.on(signal, handler)
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler)
  }
}
