/** Every gap there can be, asked of the function that finds them: policies that want all, on a machine that can do nothing. */
import { type Capabilities, findGaps } from '../../plan/gaps.ts'
import { denyAll, type Policy } from '../../policy/policy.ts'

const NOTHING_HELD: Capabilities = {
  backend: 'soft',
  isolation: 'soft',
  kernelFiles: false,
  daemonUser: false,
  networkNamespace: false,
  gateway: true,
  bridge: false,
  seccomp: false,
  listedExec: false,
  images: false,
  mapsUser: true,
  ports: false,
  limits: {
    cpus: 'none',
    memory: 'none',
    pids: 'none',
    wall: 'none',
    disk: 'none',
    output: 'none',
    files: 'none',
  },
}

/** Not of a plan: found when an image is built, and when the kernel is given its rules. */
const FOUND_LATER = ['refusals-unrecorded']

export function gapNames(): string[] {
  const nothing = denyAll('/' as Policy['workspace'])
  // Only what `findGaps` looks at is there: this policy is never compiled, kept or run.
  const wants = (mode: Policy['network']['mode']): Policy => ({
    ...nothing,
    network: { ...nothing.network, mode, offline: false },
    files: { ...nothing.files, deny: [{ rule: { kind: 'glob', glob: { anyDepth: true } } } as never] },
    ports: [{} as never],
    sshAgent: [''],
    mounts: [{ rule: { kind: 'host' } } as never],
  })
  const names = [
    [wants('gateway'), NOTHING_HELD],
    [wants('bridge'), NOTHING_HELD],
    [wants('bridge'), { ...NOTHING_HELD, bridge: true }],
  ].flatMap(([policy, caps]) => findGaps(policy as Policy, caps as Capabilities, { foldsNames: true }))
  return [...new Set([...names.map(({ name }) => name), ...FOUND_LATER])].sort()
}
