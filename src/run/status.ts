/** What a supervisor reports about its sandbox. Plain data with stable keys: `pen status --json` prints it unchanged. */
import type { GatewayStats } from '../gateway/gateway-context.ts'
import type { Limits, Policy } from '../policy/policy.ts'
import type { Served } from './control-server.ts'
import type { ForwardedPort } from './forwards.ts'
import type { Serving } from './supervision/supervisor.ts'

export interface SandboxStatus {
  readonly id: string
  readonly name: string | null
  readonly workspace: string
  readonly run: string
  readonly pid: number
  readonly since: string
  readonly backend: string
  readonly isolation: string
  /** No kernel confines the sandbox: only pen's gate judges its actions. */
  readonly soft: boolean
  readonly image: string | null
  readonly network: string
  /** Null for a sandbox without a gateway. */
  readonly gateway: 'answers' | 'closed' | null
  /** Ports that are forwarded now, with their ports and addresses on the host. */
  readonly forwards: readonly ForwardedPort[]
  /** Ports on which programs of the sandbox listen. */
  readonly listening: readonly number[]
  readonly limits: Limits
  /** Limits of a single command, in milliseconds and bytes. */
  readonly exec: Policy['exec']
  readonly weaker: readonly { readonly name: string; readonly how: string }[]
  readonly gaps: readonly { readonly name: string; readonly why: string }[]
  /** What git has only in the sandbox, as of the last sync: staged files, an unfinished rebase, refs that were put aside. */
  readonly git: readonly string[]
  /** Commands that run now. */
  readonly executions: number
}

export interface SandboxStats {
  /** Milliseconds since the machine booted, so that two readings give a rate. */
  readonly atMs: number
  readonly cpuMs: number
  readonly memoryBytes: number
  readonly processes: number
  /** Bytes added to the project and the volumes since the start. */
  readonly diskBytes: number
  readonly executions: number
  readonly limits: Pick<Limits, 'cpus' | 'memory' | 'pids' | 'disk'>
  readonly network: Traffic | null
}

type Traffic = Readonly<
  Pick<GatewayStats, 'open' | 'allowed' | 'denied' | 'failed' | 'bytesUp' | 'bytesDown'>
>

export function statusOf(
  { project, serving, since, image }: Omit<Served, 'order'>,
  executions: number,
): SandboxStatus {
  const { prepared, egress, audit } = serving
  const { plan, loaded } = prepared
  const accepted = loaded.policy.acceptGaps
  return {
    id: project.id,
    name: project.name ?? null,
    workspace: plan.workspace,
    run: audit.run,
    pid: process.pid,
    since,
    backend: plan.backend,
    isolation: plan.isolation,
    soft: plan.soft,
    image,
    network: plan.network.kind === 'none' ? `none (${plan.network.why})` : plan.network.kind,
    gateway: egress === undefined ? null : egress.isServing() ? 'answers' : 'closed',
    forwards: serving.forwarding.ports,
    listening: serving.forwarding.listening,
    limits: { ...plan.limits },
    exec: { ...loaded.policy.exec },
    weaker: plan.weaker.map(({ name, how }) => ({ name, how })),
    gaps: plan.gaps.filter(({ name }) => accepted.includes(name)).map(({ name, why }) => ({ name, why })),
    git: serving.repository?.pending() ?? [],
    executions,
  }
}

export async function statsOf(serving: Serving, executions: number): Promise<SandboxStats> {
  const { limits, egress, prepared } = serving
  const { cpuMs, memoryBytes, pids } = limits.usage()
  const { cpus, memory, pids: mostPids, disk } = prepared.plan.limits
  return {
    atMs: Math.round(performance.timeOrigin + performance.now()),
    cpuMs: Math.round(cpuMs),
    memoryBytes,
    processes: pids,
    diskBytes: await limits.grown(),
    executions,
    limits: { cpus, memory, pids: mostPids, disk },
    network: egress === undefined ? null : traffic(egress.stats()),
  }
}

const traffic = ({ open, allowed, denied, failed, bytesUp, bytesDown }: GatewayStats): Traffic => ({
  open,
  allowed,
  denied,
  failed,
  bytesUp,
  bytesDown,
})
