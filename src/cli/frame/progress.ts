import { afterPatience } from '../../terminal/screen.ts'
import type { Terminal } from './terminal.ts'

/** Shows a progress line on a terminal if the work takes long. */
export async function withProgress<T>(what: string, terminal: Terminal, work: () => Promise<T>): Promise<T> {
  const stop = afterPatience(() => terminal.note(`pen: ${what} …`))
  try {
    return await work()
  } finally {
    stop()
  }
}
