/**
 * Podman for the tests, as root and as an ordinary user, with its own storage and settings. It touches none of
 * the machine's containers, ignores the machine's configuration, and needs no systemd session.
 */
import { chownSync, existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Who } from '../conformance/launcher.ts'
import { spreadOut } from '../spread-out.ts'
import { CACHE, isRoot, locked, makeBase } from './base-image.ts'
import { BASE_NAME, missingCommands, PRUNE, type TestEngine } from './test-engine.ts'

/**
 * Settings that differ between machines are explicit: a runtime for every cgroup layout, and limits that may be
 * set.
 */
const settings = (store: string): string => `
[network]
network_config_dir = "${store}/networks"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
image_default_transport = "containers-storage:"
[containers]
log_driver = "k8s-file"
default_ulimits = ["nofile=1024:4096", "nproc=2048:4096"]
`

/** Removed at reboot, as podman expects. */
export const RUN = isRoot
  ? '/run/pen-test'
  : (process.env['XDG_RUNTIME_DIR'] ?? `/tmp/pen-test-${process.getuid?.()}`)

const ready = new Map<number, TestEngine>()

/** Contains the base, under the name of the base that pen builds on. Undefined where this machine cannot run it. */
export function podmanOf(who: Who): TestEngine {
  const known = ready.get(who.uid)
  if (known !== undefined) return known
  const root = who.uid === 0
  const store = join(CACHE, `podman-${who.uid}`)
  const run = join(RUN, `podman-${who.uid}`)
  for (const dir of [CACHE, RUN]) mkdirSync(dir, { recursive: true, mode: 0o755 })
  const layers = join(store, 'storage/overlay')
  for (const dir of [store, run, join(store, 'storage'), layers]) own(dir, who)
  spreadOut(layers)
  const files = { storage: join(store, 'storage.conf'), settings: join(store, 'containers.conf') }
  const places = `driver = "overlay"\ngraphroot = "${store}/storage"\nrunroot = "${run}/storage"\n`
  write(files.storage, `[storage]\n${places}`)
  write(files.settings, settings(store))
  const env = {
    CONTAINERS_STORAGE_CONF: files.storage,
    CONTAINERS_CONF: files.settings,
    XDG_RUNTIME_DIR: run,
    XDG_DATA_HOME: join(store, 'data'),
    XDG_CONFIG_HOME: join(store, 'config'),
  }
  const engine: TestEngine = {
    name: root ? 'podman, as root' : 'podman without root',
    backend: 'podman',
    who,
    env,
    command: argv => [
      ...who.become,
      'env',
      `HOME=${store}`,
      ...Object.entries(env).map(([k, v]) => `${k}=${v}`),
      'podman',
      ...argv,
    ],
  }
  load(engine)
  ready.set(who.uid, engine)
  return engine
}

/** Imported once for each content of the base. */
function load(engine: TestEngine): void {
  const { key, full } = makeBase()
  const name = `localhost/pen-test:${key}`
  const script = `"$@" image exists ${name} || "$@" import ${full} ${name} && "$@" tag ${name} ${BASE_NAME} && { "$@" ${PRUNE} || true; }`
  locked(`podman-${engine.who.uid}`, ['sh', '-c', script, 'sh', ...engine.command([])])
}

function own(dir: string, { uid, gid }: Who): void {
  if (existsSync(dir)) return
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  chownSync(dir, uid, gid)
}

function write(file: string, text: string): void {
  writeFileSync(file, text, { mode: 0o644 })
}

/** Why there is no podman for this user, or undefined. */
export function podmanMissing(who: Who): string | undefined {
  const rootless = who.uid === 0 ? [] : ['newuidmap']
  const missing = missingCommands(['podman', 'runc', 'conmon', 'mmdebstrap', ...rootless])
  return missing.length === 0 ? undefined : `${missing.join(', ')} missing`
}
