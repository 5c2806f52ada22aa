/**
 * The arguments with which an engine builds an image. The Dockerfile and its context are hostile, and choose no flag.
 */
import { DOOR_NAMES } from './arguments.ts'
import type { EngineName } from './engine/engine.ts'

export type BuildNetwork =
  /** The namespace of a container, for an engine that can join no other. */
  | { readonly kind: 'container'; readonly id: string }
  /** The namespace of a process: empty, or with a door and its name server. */
  | { readonly kind: 'namespace'; readonly pid: number; readonly hosts: string }
  /** The engine's own open network. */
  | { readonly kind: 'open' }

export interface BuildOrder {
  readonly dockerfile: string
  /** A directory that no other user can write. */
  readonly context: string
  readonly name: string
  readonly labels: readonly string[]
  readonly args: ReadonlyMap<string, string>
  readonly network: BuildNetwork
  readonly pull: boolean
  readonly cache: boolean
  /** In bytes. Undefined when the engine cannot enforce it. */
  readonly memory: number | undefined
  /** Undefined when the engine cannot enforce it. */
  readonly cpus: number | undefined
  readonly ulimits: { readonly nofile: number; readonly nproc: number }
}

/** Capabilities that no build step needs: devices, raw packets, low ports, and capability changes. */
const DROPPED = ['AUDIT_WRITE', 'MKNOD', 'NET_BIND_SERVICE', 'NET_RAW', 'SETPCAP']

/** Engines pass these variables to a build by default. */
const PROXIES = ['HTTP_PROXY', 'HTTPS_PROXY', 'FTP_PROXY', 'NO_PROXY', 'ALL_PROXY']

const PARTICULAR: Readonly<Record<EngineName, (order: BuildOrder) => readonly string[]>> = {
  podman: ({ network, pull, cache }) => [
    pull ? '--pull=true' : '--pull=never',
    '--http-proxy=false',
    '--format=docker',
    `--layers=${cache}`,
    ...DROPPED.map(name => `--cap-drop=${name}`),
    ...podmanNetwork(network),
  ],
  docker: ({ network, pull }) => [
    ...(pull ? ['--pull'] : []),
    ...PROXIES.flatMap(name => [name, name.toLowerCase()]).map(name => `--build-arg=${name}=`),
    network.kind === 'container' ? `--network=container:${network.id}` : '--network=none',
  ],
}

function podmanNetwork(network: BuildNetwork): readonly string[] {
  switch (network.kind) {
    case 'open':
      return []
    case 'container':
      return [`--network=container:${network.id}`]
    case 'namespace':
      return [
        `--network=ns:/proc/${network.pid}/ns/net`,
        ...DOOR_NAMES,
        // Without these flags the engine copies the host's names and addresses into the build.
        '--no-hosts',
        `--volume=${network.hosts}:/etc/hosts:ro`,
      ]
  }
}

const CPU_PERIOD = 100_000

const cpuArguments = (cpus: number): string[] => [
  `--cpu-period=${CPU_PERIOD}`,
  `--cpu-quota=${Math.ceil(cpus * CPU_PERIOD)}`,
]

/** Chooses Docker's builder that accepts limits and a network by flag. podman ignores the variable. */
export const BUILD_ENVIRONMENT = { DOCKER_BUILDKIT: '0' } as const

export function buildArguments(engine: EngineName, order: BuildOrder): string[] {
  const { nofile, nproc } = order.ulimits
  return [
    'build',
    `--file=${order.dockerfile}`,
    `--tag=${order.name}`,
    '--force-rm',
    ...order.labels.map(label => `--label=${label}`),
    ...[...order.args].map(([name, value]) => `--build-arg=${name}=${value}`),
    ...(order.cache ? [] : ['--no-cache']),
    ...(order.cpus === undefined ? [] : cpuArguments(order.cpus)),
    ...(order.memory === undefined ? [] : [`--memory=${order.memory}`, `--memory-swap=${order.memory}`]),
    `--ulimit=nofile=${nofile}:${nofile}`,
    `--ulimit=nproc=${nproc}:${nproc}`,
    ...PARTICULAR[engine](order),
    order.context,
  ]
}
