import type { ExecEnding, Execution } from '../backend.ts'

const nothing = (): void => undefined

/** A command that never began. */
export const notStarted = (errno: string, reason = ''): Execution =>
  over({ kind: 'not-started', errno, reason })

/** One that is over before anybody could say anything to it. */
export const over = (ending: ExecEnding): Execution => ({
  write: async () => undefined,
  endInput: nothing,
  resize: nothing,
  signal: nothing,
  kill: nothing,
  ended: Promise.resolve(ending),
})
