/**
 * Runs work whose size a sandbox decides, such as listing a million files, a few milliseconds at a time. Timers, limits, the
 * gateway and `pen stop` never wait for it.
 */
const SLICE_MS = 4
const REST_MS = 4

/** The result; undefined when the work was not done by `deadline` (of `performance.now()`). */
export async function inSlices<T>(
  work: Generator<void, T, void>,
  deadline = () => Number.POSITIVE_INFINITY,
): Promise<T | undefined> {
  for (let ends = performance.now() + SLICE_MS; ; ) {
    const step = work.next()
    if (step.done === true) return step.value
    const now = performance.now()
    if (now < ends) continue
    if (now >= deadline()) {
      // Its `finally` blocks run: they close descriptors.
      work.return(undefined as never)
      return undefined
    }
    await Bun.sleep(REST_MS)
    ends = performance.now() + SLICE_MS
  }
}
