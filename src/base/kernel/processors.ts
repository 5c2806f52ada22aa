/** The processors that a process may run on: a bit mask, one bit per processor. */
import { systemCall, tryCall } from './system-call.ts'

/** Room for 1,024 processors, the common maximum of kernel builds. */
const MASK_BYTES = 128

export function maskOf(pid: number): Uint8Array {
  const mask = new Uint8Array(MASK_BYTES)
  systemCall('sched_getaffinity', pid, mask.length, mask)
  return mask
}

export function setMask(pid: number, mask: Uint8Array): void {
  systemCall('sched_setaffinity', pid, mask.length, mask)
}

/** The processor that runs this thread now. */
export function currentProcessor(): number {
  const processor = new Uint32Array(1)
  systemCall('getcpu', processor, null, null)
  return processor[0] ?? 0
}

/** Their numbers. Empty when the process is gone. */
export function processorsOf(pid: number): number[] {
  const mask = new Uint8Array(MASK_BYTES)
  if (tryCall('sched_getaffinity', pid, mask.length, mask) < 0) return []
  return [...mask].flatMap((byte, i) =>
    [0, 1, 2, 3, 4, 5, 6, 7].filter(bit => (byte & (1 << bit)) !== 0).map(bit => i * 8 + bit),
  )
}

/** Inherited by everything started later. No effect when the process is gone or the kernel refuses. */
export function setProcessors(pid: number, processors: readonly number[]): void {
  const mask = new Uint8Array(MASK_BYTES)
  for (const cpu of processors) mask[cpu >> 3] = (mask[cpu >> 3] ?? 0) | (1 << (cpu & 7))
  tryCall('sched_setaffinity', pid, mask.length, mask)
}
