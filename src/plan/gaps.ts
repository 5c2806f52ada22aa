/** Promises of the policy that a backend cannot keep: named, printed, and accepted by the user or the run stops. */
import type { Policy } from '../policy/policy.ts'
import { CACHE_VOLUME } from '../policy/profile.ts'
import type { BackendName, Isolation } from '../policy/settings.ts'
import type { HostFacts } from './facts.ts'

/** How firmly a backend holds one limit on this machine. */
export type Enforcement = 'kernel' | 'watchdog' | 'none'

/** What a backend can do on this machine, found by trying. Nothing outside `backend/` asks for a backend's name. */
export interface Capabilities {
  readonly backend: BackendName
  readonly isolation: Exclude<Isolation, 'auto'>
  /** Denied and protected paths are held by the kernel. */
  readonly kernelFiles: boolean
  /** A network namespace of its own: nothing leaves but through the gateway. */
  readonly networkNamespace: boolean
  readonly gateway: boolean
  readonly bridge: boolean
  readonly seccomp: boolean
  readonly listedExec: boolean
  /** The programs inside are those of an image, not the host's. */
  readonly images: boolean
  /** Who the sandbox sees itself as need not be who it is on the host. */
  readonly mapsUser: boolean
  readonly ports: boolean
  readonly limits: { readonly [K in keyof Policy['limits']]: Enforcement }
  /** The exec daemon of a sandbox that stays has a user of its own. */
  readonly daemonUser: boolean
  /** Weaknesses that the backend itself names. */
  readonly weaker?: readonly Weaker[]
}

export interface Gap {
  readonly name: string
  readonly why: string
}

/** A promise that is kept, but in a weaker way than elsewhere: printed, not refused. */
export interface Weaker {
  readonly name: string
  readonly how: string
}

export function findGaps(
  policy: Policy,
  caps: Capabilities,
  { foldsNames }: Pick<HostFacts, 'foldsNames'>,
): Gap[] {
  const gaps: Gap[] = []
  const gap = (name: string, why: string) => gaps.push({ name, why })
  if (!caps.kernelFiles) findGapsWithoutKernel(policy, gap)
  if (!caps.networkNamespace)
    gap('proxy-only', 'programs that ignore the proxy are not stopped by the kernel')
  if (!caps.seccomp) gap('no-seccomp', 'dangerous system calls are not filtered')
  if (policy.network.mode === 'bridge' && !policy.network.offline) {
    if (caps.bridge)
      gap('open-network', 'network.mode "bridge" is the open network of the engine: no rule is enforced')
    else gap('no-bridge', 'this backend has no network of its own for network.mode "bridge"')
  }
  if (policy.tools.exec === 'listed' && !caps.listedExec)
    gap('exec-unlisted', 'files that the sandbox writes can be executed, whatever tools.exec says')
  if (policy.ports.length > 0 && !caps.ports)
    gap('no-ports', 'ports of the sandbox are not forwarded to the host')
  if (policy.sshAgent.length > 0)
    gap('no-ssh-agent', 'keys of your SSH agent are not passed on: bring a key of its own instead')
  for (const [limit, hold] of Object.entries(caps.limits))
    if (hold === 'none') gap(`no-limit-${limit}`, `limits.${limit} cannot be held on this machine`)
  if (policy.files.deny.some(({ rule }) => rule.kind === 'glob' && rule.glob.anyDepth))
    gap(
      'deny-any-depth',
      'a "**/" denial is held at the workspace root only: deeper matches would need a walk of the tree',
    )
  if (foldsNames && policy.files.deny.length + policy.files.protect.length > 0)
    gap(
      'names-folded',
      'the file system of the workspace takes names in any case: denied and protected files are open by another spelling',
    )
  return gaps
}

/** Where pen stands beside its programs, not around them. */
function findGapsWithoutKernel(policy: Policy, gap: (name: string, why: string) => void): void {
  gap(
    'files-by-gate',
    'files are guarded by pen itself, not by the kernel: a program that runs can open whatever its user can',
  )
  gap(
    'tools-by-gate',
    'tools.allow and tools.shell are asked for the command alone: a program that runs can start any other',
  )
  gap('processes-may-escape', 'no namespace holds its processes: one that ends pen can outlive the run')
  if (policy.mounts.some(({ rule }) => rule.kind !== 'volume' || rule.volume !== CACHE_VOLUME))
    gap('no-mounts', 'nothing is mounted: the mounts of the policy are not there')
}

export function findWeaker(caps: Capabilities): Weaker[] {
  const watched = Object.entries(caps.limits)
    .filter(([, hold]) => hold === 'watchdog')
    .map(([limit]) => ({
      name: `limit-${limit}`,
      how: `limits.${limit} is watched by pen instead of held by the kernel`,
    }))
  return [...watched, ...(caps.weaker ?? [])]
}

/** Gaps that the user has not accepted by name. The run stops while there is one. */
export const openGaps = (gaps: readonly Gap[], accepted: readonly string[]): Gap[] =>
  gaps.filter(gap => !accepted.includes(gap.name))
