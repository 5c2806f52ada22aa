import { kernelRelease } from '../base/kernel/kernel-release.ts'
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
        'the sandbox is built from parts of Linux',
        'run pen on Linux, or in a virtual machine that has one',
      ),
    ]
  const named = `Linux ${release} on ${process.arch}`
  if (boundsProcessesByNamespace(release)) return [ok('kernel', named)]
  return [
    weak(
      'kernel',
      named,
      'before 5.14 the number of processes is watched where no cgroup counts them, not held',
      'update the kernel to 5.14 or newer',
    ),
  ]
}
