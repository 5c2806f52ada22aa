/** Linux has the same numbers on every machine that pen runs on; node:os takes longer to load than a command to start. */
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

/** Undefined for those that nobody sends to a command on purpose. */
export const signalName = (number: number): NodeJS.Signals | undefined => NAMES.get(number)

/** Those that a supervisor passes on. */
export const isForwardable = (name: string): name is NodeJS.Signals => Object.hasOwn(NUMBERS, name)
