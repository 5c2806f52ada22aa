/** What the kernel says of a terminal. */
import { systemCall } from '../base/kernel/system-call.ts'

const TCGETS = 0x5401

/** struct termios of the kernel: four words of flags, the line discipline and 19 control characters. */
export type Modes = Uint8Array

/** Undefined when it is no terminal. */
export function readTermios(fd: number): Modes | undefined {
  const modes = new Uint8Array(64)
  try {
    systemCall('ioctl', fd, TCGETS, modes)
    return modes
  } catch {
    return undefined
  }
}

export const isTerminal = (fd: number): boolean => readTermios(fd) !== undefined
