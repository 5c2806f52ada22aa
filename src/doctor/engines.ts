/** Installed container engines, runtimes and virtual machines: version, known escapes, and whether they work. */
import { existsSync } from 'node:fs'
import { refuseForeign } from '../backend/container/backends.ts'
import { findEngine } from '../backend/container/engine/engine.ts'
import { type EngineFacts, engineFacts } from '../backend/container/engine/engine-facts.ts'
import { tryPodman } from '../backend/container/engine/trial.ts'
import { findTool } from '../base/find-tool.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { kernelRelease } from '../base/kernel/kernel-facts.ts'
import { installLine } from './distribution.ts'
import { type Finding, hintOf, messageOf, ok, weak } from './finding.ts'
import { describeEscapes, escapesOf, TABLE_DATE } from './known-escapes.ts'
import type { Machine } from './machine.ts'
import { askVersion } from './version.ts'

interface Installed {
  readonly name: string
  readonly package: string
  /** How pen uses it. */
  readonly use: 'engine' | 'runtime' | 'nothing yet'
}

const ENGINES: readonly Installed[] = [
  { name: 'podman', package: 'podman', use: 'engine' },
  { name: 'docker', package: 'docker.io', use: 'engine' },
  { name: 'runc', package: 'runc', use: 'runtime' },
  { name: 'crun', package: 'crun', use: 'runtime' },
  { name: 'runsc', package: 'runsc', use: 'runtime' },
  { name: 'qemu-system-x86_64', package: 'qemu-system-x86', use: 'nothing yet' },
  { name: 'qemu-system-aarch64', package: 'qemu-system-arm', use: 'nothing yet' },
]

export async function checkEngines({
  distribution,
  scratch,
  env,
  home,
}: Machine): Promise<readonly Finding[]> {
  const found = await Promise.all(
    ENGINES.map(async installed => {
      const path = findTool(installed.name)
      return path === undefined ? [] : [{ ...installed, path, version: await askVersion(path, home) }]
    }),
  )
  const installed = found.flat()
  // A program that prints no version is not checked further.
  const answers = (name: string) => installed.some(one => one.name === name && one.version !== undefined)
  return [
    ...installed.map(({ name, path, version, package: from, use }) =>
      judgeEngine(name, path, version, installLine(distribution, from), use),
    ),
    ...(answers('podman') && scratch !== undefined && isInUse(env, home)
      ? await checkPodman(scratch, distribution)
      : []),
    ...(answers('podman') && answers('runsc') && scratch !== undefined && isHostRoot()
      ? await checkGvisor(scratch)
      : []),
    ...(answers('docker') ? await checkDocker(distribution) : []),
  ]
}

/** podman creates its storage on first use. The doctor must not cause that for users who never used podman. */
function isInUse(env: Machine['env'], home: string): boolean {
  const data = env['XDG_DATA_HOME'] ?? `${home}/.local/share`
  return (
    env['CONTAINERS_STORAGE_CONF'] !== undefined ||
    existsSync(isHostRoot() ? SYSTEM_STORAGE : `${data}/containers`)
  )
}

const SYSTEM_STORAGE = '/var/lib/containers/storage'

export function judgeEngine(
  name: string,
  path: string,
  version: string | undefined,
  install: string,
  use: Installed['use'] = 'engine',
): Finding {
  const id = `engine-${name}`
  const unused = use === 'nothing yet' ? 'pen does not use it yet' : undefined
  if (version === undefined) return weak(id, path, and('it prints no version', unused), install)
  const escapes = escapesOf(name, version)
  if (escapes.length === 0) return ok(id, `${path} ${version}`, unused)
  return weak(
    id,
    `${path} ${version}`,
    and(
      `known escapes: ${describeEscapes(escapes)}, as of ${TABLE_DATE}`,
      unused ?? 'pen run without a container is not affected',
    ),
    `${install}, unless your distribution fixed it in the same version`,
  )
}

const and = (first: string, second: string | undefined): string =>
  second === undefined ? first : `${first}; ${second}`

/** `pen run` does not need podman, so a problem is weak, not a failure. */
async function checkPodman(
  scratch: string,
  distribution: Machine['distribution'],
): Promise<readonly Finding[]> {
  const id = 'container-podman'
  try {
    const engine = findEngine('podman')
    if (engine === undefined) return []
    const facts = await engineFacts(engine, undefined)
    const { runtime } = await tryPodman(engine, facts, scratch)
    const how = facts.rootless ? 'without root' : 'as root'
    const limits =
      facts.held.length === 0 ? 'pen checks the limits' : `limits enforced: ${facts.held.join(', ')}`
    return [
      ok(id, `podman starts a container ${how}, with ${runtime ?? facts.runtime}`, limits),
      ...judgeStorage('podman', facts, distribution),
    ]
  } catch (error) {
    return [weak(id, 'podman cannot start a container', messageOf(error), hintOf(error))]
  }
}

/** Since this kernel a normal user can mount overlays without fuse-overlayfs. */
const OWN_OVERLAY = [5, 11] as const

/** `vfs` copies the whole image for each layer and container, so a start takes seconds. */
export function judgeStorage(
  name: 'podman' | 'docker',
  { driver, rootless, storage }: Pick<EngineFacts, 'driver' | 'rootless' | 'storage'>,
  distribution: Machine['distribution'],
  kernel = kernelRelease(),
): readonly Finding[] {
  if (driver !== 'vfs') return []
  const [major = 0, minor = 0] = kernel.split('.').map(Number)
  const isOld = major < OWN_OVERLAY[0] || (major === OWN_OVERLAY[0] && minor < OWN_OVERLAY[1])
  const install = rootless && isOld ? `${installLine(distribution, 'fuse-overlayfs')}; then ` : ''
  const file = rootless ? '~/.config/containers/storage.conf' : '/etc/containers/storage.conf'
  const fix =
    name === 'docker'
      ? 'write {"storage-driver": "overlay2"} into /etc/docker/daemon.json and restart the daemon'
      : `${install}write [storage] and driver = "overlay" into ${file}, then run podman system reset, which removes all its images and containers`
  return [
    weak(
      `storage-${name}`,
      `${name} copies whole images (storage driver vfs, ${storage})`,
      'each container takes seconds to start and as much disk as its image',
      fix,
    ),
  ]
}

/** Only for root: without root, pen refuses gVisor. */
async function checkGvisor(scratch: string): Promise<readonly Finding[]> {
  const id = 'container-gvisor'
  const engine = findEngine('podman')
  if (engine === undefined) return []
  const started = 'podman starts a container on gVisor'
  let isStarted: boolean = false
  try {
    const facts = await engineFacts(engine, undefined)
    await tryPodman(engine, facts, scratch, { tool: 'true', words: [], gvisor: true })
    isStarted = true
    await tryPodman(engine, facts, scratch, { tool: 'stat', words: ['/'], gvisor: true })
    return [ok(id, started)]
  } catch (error) {
    if (!isStarted)
      return [weak(id, 'podman cannot start a container on gVisor', messageOf(error), hintOf(error))]
    const why = 'ls and stat fail in it: this gVisor version does not support a flag that they use'
    return [weak(id, started, why, 'install a newer runsc')]
  }
}

async function checkDocker(distribution: Machine['distribution']): Promise<readonly Finding[]> {
  const id = 'container-docker'
  try {
    const engine = findEngine('docker')
    if (engine === undefined) return []
    const facts = await engineFacts(engine, undefined)
    refuseForeign(facts)
    const answers = `the Docker daemon ${facts.version} answers, with the runtime ${facts.runtime}`
    // A user who can start Docker containers has the power of root.
    return [
      ok(id, answers, isHostRoot() ? undefined : 'pen uses a root helper container'),
      ...judgeStorage('docker', facts, distribution),
    ]
  } catch (error) {
    // A normal user may have no access to Docker.
    if (!isHostRoot()) return [ok(id, 'Docker is not used', messageOf(error))]
    return [weak(id, 'the Docker daemon cannot be used', messageOf(error), hintOf(error))]
  }
}
