import { landlockAbi } from '../base/kernel/landlock-abi.ts'
import { type Finding, ok, weak } from './finding.ts'

/** Needed by one setting only, so its absence is no failure. */
export async function checkLandlock(_: unknown, abi = landlockAbi()): Promise<readonly Finding[]> {
  if (abi > 0) return [ok('landlock', `Landlock answers with ABI ${abi}`)]
  return [
    weak(
      'landlock',
      'the kernel has no Landlock, or it is switched off',
      'tools.exec "listed" cannot be held here and stops as a gap',
      'boot with landlock in the list of the parameter lsm=, on Linux 5.13 or newer',
    ),
  ]
}
