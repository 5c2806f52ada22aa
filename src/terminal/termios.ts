/** The terminal settings of a descriptor. */
import { systemCall } from '../base/kernel/system-call.ts'

const TCGETS = 0x5401

/** The kernel's struct termios: four words of flags, the line discipline and 19 control characters. */
type Termios = Uint8Array

/** Undefined when the descriptor is not a terminal. */
export function readTermios(fd: number): Termios | undefined {
  const modes = new Uint8Array(64)
  try {
    systemCall('ioctl', fd, TCGETS, modes)
    return modes
  } catch {
    return undefined
  }
}

export const isTerminal = (fd: number): boolean => readTermios(fd) !== undefined

const ICANON = 0o2

/** Whether the terminal delivers single keys instead of lines, as for an editor or a shell prompt. */
export function isRaw(fd: number): boolean {
  const termios = readTermios(fd)
  return termios !== undefined && ((new Uint32Array(termios.buffer, 0, 4)[3] ?? 0) & ICANON) === 0
}
