/** The phases of a run with their times, for `--debug` and `PEN_DEBUG=1`. A mark costs one comparison when it is off. */

let print: ((line: string) => void) | undefined
let last = 0

/** Prints each phase from now on, through `to`. */
export function showPhases(to: (line: string) => void): void {
  print = to
}

export const areShown = (): boolean => print !== undefined

/** Marks the end of a phase: the time since this process started, and the time since the mark before. */
export function phase(name: string): void {
  if (print === undefined) return
  const now = performance.now()
  print(`debug: ${millis(now)} ms  +${millis(now - last)} ms  ${name}`)
  last = now
}

const millis = (value: number): string => value.toFixed(1).padStart(7)
