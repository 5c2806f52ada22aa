/** What an engine is told to build an image. The Dockerfile and its context are hostile; nothing of them chooses a flag. */
import { DOOR_NAMES } from './arguments.ts'
import type { EngineName } from './engine/engine.ts'

export type BuildNetwork =
  /** That of a container, for an engine that can join no other. */
  | { readonly kind: 'container'; readonly id: string }
  /** That of a process: empty, or with a door in it, where every name is asked for. */
  | { readonly kind: 'namespace'; readonly pid: number; readonly hosts: string }
  /** The engine's own, open one. */
  | { readonly kind: 'open' }

export interface BuildOrder {
  readonly dockerfile: string
  /** A directory that nobody else can write. */
  readonly context: string
  readonly name: string
  readonly labels: readonly string[]
  readonly args: ReadonlyMap<string, string>
  readonly network: BuildNetwork
  readonly pull: boolean
  readonly cache: boolean
  /** In bytes; undefined where the engine cannot hold it. */
  readonly memory: number | undefined
  /** The same. */
  readonly cpus: number | undefined
  readonly ulimits: { readonly nofile: number; readonly nproc: number }
}

/** What no step of a build needs: devices, raw packets, ports of the door, and powers over powers. */
const DROPPED = ['AUDIT_WRITE', 'MKNOD', 'NET_BIND_SERVICE', 'NET_RAW', 'SETPCAP']

/** Engines hand these on to a build by themselves. */
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
        // Without these the names and addresses of the host are copied in.
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

/** Docker is asked for the builder that takes limits and a network by flag; podman does not know the variable. */
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
