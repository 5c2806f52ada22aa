/** Starts programs. Nothing else in src/ does, except the library on Node (`library/start-by-node.ts`). */
import { readKernelFile } from './kernel/kernel-file.ts'
import { restoreSignal } from './kernel/process.ts'

/** `Bun.spawn`, with exit codes that can be trusted. The caller says what the program inherits: `env`, `cwd`, `stdio`. */
export function startProgram<
  const In extends Bun.SpawnOptions.Writable = 'ignore',
  const Out extends Bun.SpawnOptions.Readable = 'pipe',
  const Err extends Bun.SpawnOptions.Readable = 'inherit',
>(
  argv: readonly string[],
  options?: Bun.SpawnOptions.SpawnOptions<In, Out, Err>,
): Bun.Subprocess<In, Out, Err> {
  rememberChildren()
  return Bun.spawn([...argv], options)
}

const SIGCHLD = 17

let isDone: boolean = false

/** A parent that ignores SIGCHLD passes that on: then the kernel forgets ended children, and exit codes are lost. */
function rememberChildren(): void {
  if (isDone || process.platform !== 'linux') return
  isDone = true
  // The last five hexadecimal digits are the first twenty signals.
  const [, ignored = '0'] =
    /^SigIgn:\s*[0-9a-f]*([0-9a-f]{5})$/m.exec(readKernelFile('/proc/self/status')) ?? []
  if ((Number.parseInt(ignored, 16) >> (SIGCHLD - 1)) & 1) restoreSignal(SIGCHLD)
}
