/**
 * Chooses the processor for a start. The kernel puts a new process on the processor of its parent. When pen is busy
 * there, the new process waits while other processors idle, which costs 2 ms of a start. So the guard and its children
 * avoid pen's processor until the sandbox's init exists. Then the sandbox may run on every processor that pen may use.
 */
import { currentProcessor, maskOf, setMask } from '../../base/kernel/processors.ts'

/** Returns a function that lets the init, and so every process inside, use all processors again. */
export function avoidOwnProcessor(guard: number): (init: number) => void {
  let own: Uint8Array
  try {
    own = maskOf(0)
    const others = without(own, currentProcessor())
    if (others.every(bits => bits === 0)) return () => undefined
    setMask(guard, others)
  } catch {
    // The start is only slower. Causes: root may not move the process of another user, or the kernel's mask is larger.
    return () => undefined
  }
  return init => {
    try {
      setMask(init, own)
    } catch {
      // The init has ended, or its cpuset has none of pen's processors. It runs where the kernel allows.
    }
  }
}

function without(mask: Uint8Array, processor: number): Uint8Array {
  return mask.map((bits, i) => (i === processor >> 3 ? bits & ~(1 << (processor & 7)) : bits))
}
