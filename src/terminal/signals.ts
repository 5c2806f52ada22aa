/**
 * Signal names and numbers. Linux has the same numbers on every architecture that pen supports. Loading node:os would take longer
 * than starting a command.
 */
const NUMBERS: Readonly<Partial<Record<NodeJS.Signals, number>>> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGABRT: 6,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGUSR2: 12,
  SIGPIPE: 13,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGCONT: 18,
  SIGSTOP: 19,
  SIGTSTP: 20,
  SIGTTIN: 21,
  SIGTTOU: 22,
  SIGWINCH: 28,
}

const NAMES = new Map(Object.entries(NUMBERS).map(([name, number]) => [number, name as NodeJS.Signals]))

export const signalNumber = (name: NodeJS.Signals): number => NUMBERS[name] ?? 15

/** Undefined for a signal that pen does not forward. */
export const signalName = (number: number): NodeJS.Signals | undefined => NAMES.get(number)

/** Whether a supervisor forwards this signal to a command. */
export const isForwardable = (name: string): name is NodeJS.Signals => Object.hasOwn(NUMBERS, name)

/** SIGCONT too: a stopped process gets no other signal until it continues. */
const FORWARDED = ['SIGINT', 'SIGQUIT', 'SIGTERM', 'SIGHUP', 'SIGUSR1', 'SIGUSR2', 'SIGCONT'] as const

/** Sends signals of this process to a command elsewhere. Returns a function that stops it. */
export function forwardSignals(
  send: (signal: NodeJS.Signals) => void,
  signals: readonly NodeJS.Signals[] = FORWARDED,
): () => void {
  const handlers = signals.map(signal => [signal, () => send(signal)] as const)
  for (const [signal, handler] of handlers) process.on(signal, handler)
  return () => {
    for (const [signal, handler] of handlers) process.off(signal, handler)
  }
}
