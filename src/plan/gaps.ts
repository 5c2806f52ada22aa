/** Promises of the policy that a backend cannot keep. Each is named and printed. The run stops unless the user accepts it. */
import type { Policy } from '../policy/policy.ts'
import { CACHE_VOLUME } from '../policy/profile.ts'
import type { BackendName, Isolation } from '../policy/settings.ts'
import type { HostFacts } from './facts.ts'

/** How a backend enforces one limit on this machine. */
export type Enforcement = 'kernel' | 'watchdog' | 'none'

/** What a backend can do on this machine, found by trying. Code outside `backend/` never asks for a backend's name. */
export interface Capabilities {
  readonly backend: BackendName
  readonly isolation: Exclude<Isolation, 'auto'>
  /** The kernel enforces denied and protected paths. */
  readonly kernelFiles: boolean
  /** The sandbox has its own network namespace: all traffic goes through the gateway. */
  readonly networkNamespace: boolean
  readonly gateway: boolean
  readonly bridge: boolean
  readonly seccomp: boolean
  readonly listedExec: boolean
  /** Programs inside come from an image, not from the host. */
  readonly images: boolean
  /** The user inside can differ from the user on the host. */
  readonly mapsUser: boolean
  readonly ports: boolean
  /** Programs inside can reach a socket of the supervisor, for the SSH agent. */
  readonly sshAgent: boolean
  /** The project can be shown with a layer over it that takes all writes. */
  readonly review: boolean
  readonly limits: { readonly [K in keyof Policy['limits']]: Enforcement }
  /** The exec daemon of a sandbox that stays has a user of its own. */
  readonly daemonUser: boolean
  /** Weaker promises that the backend itself reports. */
  readonly weaker?: readonly Weaker[]
}

export interface Gap {
  readonly name: string
  readonly why: string
}

/** A promise that is kept in a weaker way than on other machines. It is printed, not refused. */
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
    gap('exec-unlisted', 'files that the sandbox writes can be executed, despite tools.exec')
  if (policy.workspaceMode === 'review' && !caps.review)
    gap('review-workspace', 'the sandbox writes to the project itself, before you have seen the changes')
  if (policy.ports.length > 0 && !caps.ports)
    gap('no-ports', 'ports of the sandbox are not forwarded to the host')
  if (policy.sshAgent.keys.length > 0 && !caps.sshAgent)
    gap('no-ssh-agent', 'keys of your SSH agent are not passed to the sandbox')
  for (const [limit, hold] of Object.entries(caps.limits))
    if (hold === 'none') gap(`no-limit-${limit}`, `limits.${limit} cannot be enforced on this machine`)
  if (foldsNames && policy.files.deny.length + policy.files.protect.length > 0)
    gap(
      'names-folded',
      'the file system of the workspace ignores case: denied and protected files are open under another spelling',
    )
  return gaps
}

/** Gaps of a backend without kernel enforcement. */
function findGapsWithoutKernel(policy: Policy, gap: (name: string, why: string) => void): void {
  gap(
    'files-by-gate',
    'pen checks files itself, without the kernel: a running program can open everything that its user can',
  )
  gap(
    'tools-by-gate',
    'tools.allow and tools.shell apply to the command only: a running program can start any other',
  )
  gap('processes-may-escape', 'no namespace contains its processes: one that kills pen can outlive the run')
  if (policy.mounts.some(({ rule }) => rule.kind !== 'volume' || rule.volume !== CACHE_VOLUME))
    gap('no-mounts', 'this backend mounts nothing: the mounts of the policy are missing')
}

export function findWeaker(caps: Capabilities): Weaker[] {
  const watched = Object.entries(caps.limits)
    .filter(([, hold]) => hold === 'watchdog')
    .map(([limit]) => ({
      name: `limit-${limit}`,
      how: `limits.${limit} is enforced by a watchdog of pen, not by the kernel`,
    }))
  return [...watched, ...(caps.weaker ?? [])]
}

/** The gaps that the user has not accepted. The run stops if there is one. */
export const openGaps = (gaps: readonly Gap[], accepted: readonly string[]): Gap[] =>
  gaps.filter(gap => !accepted.includes(gap.name))
