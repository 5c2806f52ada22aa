/** `pen __part`: one sandbox of `pen run --parallel`. It ends with the process that started it, also when that one is killed. */
import { EXIT, type ExitCode } from '../../../base/error.ts'
import { signalOnParentDeath } from '../../../base/kernel/process.ts'

const SIGTERM = 15

export const PART_MODE = '__part'

/** The first argument is the pid of the starter: it may have died before this process asked for the signal. */
export async function runPart(
  argv: readonly string[],
  run: (argv: readonly string[]) => Promise<ExitCode>,
): Promise<ExitCode> {
  const [starter, ...words] = argv
  signalOnParentDeath(SIGTERM)
  return process.ppid === Number(starter) ? await run(['run', ...words]) : EXIT.pen
}
