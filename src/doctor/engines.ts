/** Installed container engines, runtimes and virtual machines: version, known escapes, and whether they work. */
import { existsSync } from 'node:fs'
import { refuseForeign } from '../backend/container/backends.ts'
import { requireEngine } from '../backend/container/engine/engine.ts'
import { type EngineFacts, engineFacts } from '../backend/container/engine/engine-facts.ts'
import { tryPodman } from '../backend/container/engine/trial.ts'
import { findTool } from '../base/find-tool.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { kernelRelease } from '../base/kernel/kernel-facts.ts'
import { type Distribution, installLine } from './distribution.ts'
import { hintOf, type Machine, messageOf, ok, type Result, weak } from './finding.ts'
import { describeEscapes, escapesOf, TABLE_DATE } from './known-escapes.ts'
import { askVersion, compareVersions, findVersion } from './version.ts'

interface Installed {
  readonly name: string
  readonly package: string
  /** How pen uses it. */
  readonly use: 'engine' | 'runtime' | 'vm'
}

const ENGINES: readonly Installed[] = [
  { name: 'podman', package: 'podman', use: 'engine' },
  { name: 'docker', package: 'docker.io', use: 'engine' },
  { name: 'runc', package: 'runc', use: 'runtime' },
  { name: 'crun', package: 'crun', use: 'runtime' },
  { name: 'runsc', package: 'runsc', use: 'runtime' },
  { name: 'qemu-system-x86_64', package: 'qemu-system-x86', use: 'vm' },
  { name: 'qemu-system-aarch64', package: 'qemu-system-arm', use: 'vm' },
]

export async function checkEngines(machine: Machine): Promise<readonly Result[]> {
  const { distribution, scratch, home } = machine
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
    ...(answers('podman') && scratch !== undefined && isInUse(machine)
      ? await checkPodman(scratch, distribution)
      : []),
    ...(answers('podman') && answers('runsc') && scratch !== undefined && isHostRoot()
      ? await checkGvisor(scratch)
      : []),
    ...(answers('docker') ? await checkDocker(distribution) : []),
  ]
}

/** podman creates its storage on first use. The doctor must not cause that for users who never used podman. */
function isInUse({ env, home }: Machine): boolean {
  const data = env['XDG_DATA_HOME'] ?? `${home}/.local/share`
  return (
    env['CONTAINERS_STORAGE_CONF'] !== undefined ||
    existsSync(isHostRoot() ? '/var/lib/containers/storage' : `${data}/containers`)
  )
}

export function judgeEngine(
  name: string,
  path: string,
  version: string | undefined,
  install: string,
  use: Installed['use'] = 'engine',
): Result {
  const id = `engine-${name}`
  const only = use === 'vm' ? 'only isolation "vm" uses it' : undefined
  if (version === undefined) return { id, ...weak(path, and('it prints no version', only), install) }
  const escapes = escapesOf(name, version)
  if (escapes.length === 0) return { id, ...ok(`${path} ${version}`, only) }
  const why = and(
    `known escapes: ${describeEscapes(escapes)}, as of ${TABLE_DATE}`,
    only ?? 'pen run without a container is not affected',
  )
  const fix = `${install}, unless your distribution fixed it in the same version`
  return { id, ...weak(`${path} ${version}`, why, fix) }
}

const and = (first: string, second: string | undefined): string =>
  second === undefined ? first : `${first}; ${second}`

/** `pen run` does not need podman, so a problem is weak, not a failure. */
async function checkPodman(scratch: string, distribution: Distribution): Promise<readonly Result[]> {
  const id = 'container-podman'
  try {
    const engine = requireEngine('podman')
    const facts = await engineFacts(engine, undefined)
    const { runtime } = await tryPodman(engine, facts, scratch)
    const how = facts.rootless ? 'without root' : 'as root'
    const limits =
      facts.held.length === 0 ? 'pen checks the limits' : `limits enforced: ${facts.held.join(', ')}`
    return [
      { id, ...ok(`podman starts a container ${how}, with ${runtime ?? facts.runtime}`, limits) },
      ...judgeStorage('podman', facts, distribution),
    ]
  } catch (error) {
    return [{ id, ...weak('podman cannot start a container', messageOf(error), hintOf(error)) }]
  }
}

/** Since this kernel a normal user can mount overlays without fuse-overlayfs. */
const OWN_OVERLAY = '5.11'

/** `vfs` copies the whole image for each layer and container, so a start takes seconds. */
export function judgeStorage(
  name: 'podman' | 'docker',
  { driver, rootless, storage }: Pick<EngineFacts, 'driver' | 'rootless' | 'storage'>,
  distribution: Distribution,
  kernel = kernelRelease(),
): readonly Result[] {
  if (driver !== 'vfs') return []
  const isOld = compareVersions(findVersion(kernel) ?? '0', OWN_OVERLAY) < 0
  const install = rootless && isOld ? `${installLine(distribution, 'fuse-overlayfs')}; then ` : ''
  const file = rootless ? '~/.config/containers/storage.conf' : '/etc/containers/storage.conf'
  const fix =
    name === 'docker'
      ? 'write {"storage-driver": "overlay2"} into /etc/docker/daemon.json and restart the daemon'
      : `${install}write [storage] and driver = "overlay" into ${file}, then run podman system reset, which removes all its images and containers`
  const what = `${name} copies whole images (storage driver vfs, ${storage})`
  const why = 'each container takes seconds to start and as much disk as its image'
  return [{ id: `storage-${name}`, ...weak(what, why, fix) }]
}

/** Only for root: without root, pen refuses gVisor. */
async function checkGvisor(scratch: string): Promise<readonly Result[]> {
  const id = 'container-gvisor'
  const started = 'podman starts a container on gVisor'
  let isStarted: boolean = false
  try {
    const engine = requireEngine('podman')
    const facts = await engineFacts(engine, undefined)
    await tryPodman(engine, facts, scratch, { tool: 'true', words: [], gvisor: true })
    isStarted = true
    await tryPodman(engine, facts, scratch, { tool: 'stat', words: ['/'], gvisor: true })
    return [{ id, ...ok(started) }]
  } catch (error) {
    if (!isStarted)
      return [{ id, ...weak('podman cannot start a container on gVisor', messageOf(error), hintOf(error)) }]
    const why = 'ls and stat fail in it: this gVisor version does not support a flag that they use'
    return [{ id, ...weak(started, why, 'install a newer runsc') }]
  }
}

async function checkDocker(distribution: Distribution): Promise<readonly Result[]> {
  const id = 'container-docker'
  try {
    const facts = await engineFacts(requireEngine('docker'), undefined)
    refuseForeign(facts)
    const answers = `the Docker daemon ${facts.version} answers, with the runtime ${facts.runtime}`
    // A user who can start Docker containers has the power of root.
    return [
      { id, ...ok(answers, isHostRoot() ? undefined : 'pen uses a root helper container') },
      ...judgeStorage('docker', facts, distribution),
    ]
  } catch (error) {
    // A normal user may have no access to Docker.
    if (!isHostRoot()) return [{ id, ...ok('Docker is not used', messageOf(error)) }]
    return [{ id, ...weak('the Docker daemon cannot be used', messageOf(error), hintOf(error)) }]
  }
}
