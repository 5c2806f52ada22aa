/**
 * On which processor a start takes place. The kernel puts a new process where its parent runs; behind a busy pen it waits for its
 * turn there, while the next processor idles: two milliseconds of a start. So the guard, and all that comes of it, keeps off
 * pen's processor until the sandbox's init is there. From then on the sandbox runs wherever pen may.
 */
import { systemCall } from '../../base/kernel/system-call.ts'

const CALL =
  process.arch === 'arm64' ? { set: 122, get: 123, where: 168 } : { set: 203, get: 204, where: 309 }

/** One bit a processor, for the 1,024 that the kernel is commonly built for. */
const MASK_BYTES = 128

/** Returns what lets the init, and so everything inside, run on all of them again. */
export function keepApart(guard: number): (init: number) => void {
  const own = new Uint8Array(MASK_BYTES)
  try {
    systemCall('sched_getaffinity', CALL.get, 0, MASK_BYTES, own)
    const others = without(own, processorOfPen())
    if (others.every(bits => bits === 0)) return () => undefined
    setProcessors(guard, others)
  } catch {
    // It starts a little later: root without the right to move another's process, a kernel for still more processors.
    return () => undefined
  }
  return init => {
    try {
      setProcessors(init, own)
    } catch {
      // It has ended already; or none of pen's processors is left to it, as after a change of its cpuset: it runs where it may.
    }
  }
}

function processorOfPen(): number {
  const processor = new Uint32Array(1)
  systemCall('getcpu', CALL.where, new Uint8Array(processor.buffer))
  return processor[0] ?? 0
}

function without(mask: Uint8Array, processor: number): Uint8Array {
  return mask.map((bits, i) => (i === processor >> 3 ? bits & ~(1 << (processor & 7)) : bits))
}

const setProcessors = (pid: number, mask: Uint8Array): void =>
  void systemCall('sched_setaffinity', CALL.set, pid, mask.length, mask)
