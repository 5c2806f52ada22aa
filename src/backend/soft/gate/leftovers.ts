/** What a command leaves to nobody is left to pen, and ends with the command: also when it ended its supervisor first. */
import { adoptOrphans, endBelow, livingBelow } from '../../../base/kernel/end-processes.ts'

/** To be called before anything of the sandbox's is started; what it returns ends all that has come since. */
export function keepLeftovers(): () => Promise<number> {
  adoptOrphans()
  const before = new Set(livingBelow(process.pid))
  return () => endBelow(process.pid, before)
}
