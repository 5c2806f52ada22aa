import { afterPatience } from '../../run/launch-line.ts'
import type { Terminal } from './terminal.ts'

/** Work that may take long, with a line about it for whoever waits at a terminal. A script is told what came of it. */
export async function whileTelling<T>(what: string, terminal: Terminal, work: () => Promise<T>): Promise<T> {
  const endTelling = afterPatience(() => terminal.note(`pen: ${what} …`))
  try {
    return await work()
  } finally {
    endTelling()
  }
}
