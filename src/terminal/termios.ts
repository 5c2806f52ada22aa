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
