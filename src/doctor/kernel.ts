import { kernelRelease, landlockAbi } from '../base/kernel/kernel-facts.ts'
import { boundsProcessesByNamespace } from '../limits/probe.ts'
import { type Finding, fails, ok, weak } from './finding.ts'

export async function checkKernel(
  _: unknown,
  release = kernelRelease(),
  platform: string = process.platform,
): Promise<readonly Finding[]> {
  if (platform !== 'linux')
    return [
      fails(
        'kernel',
        `${platform} ${release}`,
        'sandboxes need Linux',
        'run pen on Linux, or in a Linux virtual machine',
      ),
    ]
  const named = `Linux ${release} on ${process.arch}`
  if (boundsProcessesByNamespace(release)) return [ok('kernel', named)]
  return [
    weak(
      'kernel',
      named,
      'before 5.14, without a cgroup, pen checks the number of processes instead of the kernel',
      'update the kernel to 5.14 or newer',
    ),
  ]
}

/** Only tools.exec "listed" needs Landlock, so its absence is no failure. */
export async function checkLandlock(_: unknown, abi = landlockAbi()): Promise<readonly Finding[]> {
  if (abi > 0) return [ok('landlock', `Landlock has ABI ${abi}`)]
  return [
    weak(
      'landlock',
      'Landlock is missing in the kernel or disabled',
      'tools.exec "listed" cannot be enforced here and stops as a gap',
      'boot Linux 5.13 or newer with landlock in the lsm= parameter',
    ),
  ]
}
