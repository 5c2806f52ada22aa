/**
 * On which processor a start takes place. The kernel puts a new process where its parent runs; behind a busy pen it waits for its
 * turn there, while the next processor idles: two milliseconds of a start. So the guard, and all that comes of it, keeps off
 * pen's processor until the sandbox's init is there. From then on the sandbox runs wherever pen may.
 */
import { currentProcessor, maskOf, setMask } from '../../base/kernel/processors.ts'

/** Returns what lets the init, and so everything inside, run on all of them again. */
export function keepApart(guard: number): (init: number) => void {
  let own: Uint8Array
  try {
    own = maskOf(0)
    const others = without(own, currentProcessor())
    if (others.every(bits => bits === 0)) return () => undefined
    setMask(guard, others)
  } catch {
    // It starts a little later: root without the right to move another's process, a kernel for still more processors.
    return () => undefined
  }
  return init => {
    try {
      setMask(init, own)
    } catch {
      // It has ended already; or none of pen's processors is left to it, as after a change of its cpuset: it runs where it may.
    }
  }
}

function without(mask: Uint8Array, processor: number): Uint8Array {
  return mask.map((bits, i) => (i === processor >> 3 ? bits & ~(1 << (processor & 7)) : bits))
}
