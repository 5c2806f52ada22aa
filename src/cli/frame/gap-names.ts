/** The names of all gaps, from `findGaps` with policies that want everything on a machine that supports nothing. */
import { type Capabilities, findGaps } from '../../plan/gaps.ts'
import { denyAll, type Policy } from '../../policy/policy.ts'

const NO_SUPPORT: Capabilities = {
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

/** Gaps that no plan has: the launch finds them when the kernel rejects the packet filter rules. */
const FOUND_LATER = ['refusals-unrecorded']

export function gapNames(): string[] {
  const nothing = denyAll('/' as Policy['workspace'])
  // Only the parts that `findGaps` reads are set. This policy is never stored or run.
  const wants = (mode: Policy['network']['mode']): Policy => ({
    ...nothing,
    network: { ...nothing.network, mode, offline: false },
    files: { ...nothing.files, deny: [{ rule: { kind: 'glob', glob: { anyDepth: true } } } as never] },
    ports: [{} as never],
    sshAgent: [''],
    mounts: [{ rule: { kind: 'host' } } as never],
  })
  const names = [
    [wants('gateway'), NO_SUPPORT],
    [wants('bridge'), NO_SUPPORT],
    [wants('bridge'), { ...NO_SUPPORT, bridge: true }],
  ].flatMap(([policy, caps]) => findGaps(policy as Policy, caps as Capabilities, { foldsNames: true }))
  return [...new Set([...names.map(({ name }) => name), ...FOUND_LATER])].sort()
}
