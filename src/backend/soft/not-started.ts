import type { ExecEnding, Execution } from '../backend.ts'

const nothing = (): void => undefined

/** A command that did not start. */
export const notStarted = (errno: string, reason = ''): Execution =>
  over({ kind: 'not-started', errno, reason })

/** An execution that has already ended. */
export const over = (ending: ExecEnding): Execution => ({
  write: async () => undefined,
  endInput: nothing,
  resize: nothing,
  signal: nothing,
  kill: nothing,
  ended: Promise.resolve(ending),
})
