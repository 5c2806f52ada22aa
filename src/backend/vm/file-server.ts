/**
 * virtiofsd, which serves the guest's files. It runs in an ordinary process sandbox and exports the root of that
 * sandbox. So the same mounts hide and protect the same places, and a guest that takes over virtiofsd is where a
 * command of a process sandbox is, without its network.
 */
import { closeSync, mkdtempSync, openSync, rmSync } from 'node:fs'
import { AF, listenAtPath, SOCK, unixName } from '../../base/kernel/socket.ts'
import { systemCall } from '../../base/kernel/system-call.ts'
import type { Plan, Step } from '../../plan/plan.ts'
import type { GuestPath, HostPath } from '../../policy/files/path.ts'
import { MACHINE_FILES, PEN_INSIDE } from '../../protocol/guest-paths.ts'
import type { HoldResult, LiveMounts, Running, StartOptions } from '../backend.ts'
import { start } from '../process/process.ts'
import type { GuestFiles } from './guest-files.ts'
import { GUEST_NETWORK } from './initramfs.ts'
import { LastOutput } from './last-output.ts'
import { BUSYBOX } from './package-tree.ts'

/** virtiofsd holds a descriptor for every file that the guest has cached. */
const MOST_FILES = 1_048_576

export interface FileServer {
  readonly running: Running
  /** What the servers print. It is not for the user's terminal: a guest may make virtiofsd print. */
  readonly errors: LastOutput
  /** The host's directory that the guest sees at `/run/pen`. */
  readonly inside: string
  /** Call it when both servers have started, and before the guest uses them. */
  hideProcesses(): Promise<void>
  /** QEMU's ends of the connections, for the tree and for the project. The caller closes them. */
  readonly sockets: readonly [tree: number, project: number]
}

export async function startFileServer(
  files: GuestFiles,
  plan: Plan,
  root: boolean,
  { placement, ...options }: StartOptions,
): Promise<FileServer> {
  const tree = connectedPair(options.sandbox.stateDir)
  const project = connectedPair(options.sandbox.stateDir)
  const nothing = openSync('/dev/null', 'r+')
  const errors = new LastOutput()
  try {
    const running = await start(servedPlan(files, plan), {
      ...options,
      execDaemon: false,
      stdio: [nothing, nothing, errors.writer],
      placement: { ...placement, wrap: [], env: {}, within: spawn => spawn(), hasDoor: false },
      program: {
        fds: [tree.listener, project.listener],
        argv: first => bothServers(files, plan, first, root),
      },
    })
    return {
      running,
      errors,
      inside: running.inside,
      hideProcesses: () => hideProcesses(running.mounts),
      sockets: [tree.connection, project.connection],
    }
  } catch (error) {
    for (const { connection } of [tree, project]) closeSync(connection)
    throw error
  } finally {
    for (const fd of [tree.listener, project.listener, nothing]) closeSync(fd)
    errors.closeWriter()
  }
}

/** Usually one try is enough. Each has a time limit, which a busy machine may exceed. */
const MOST_TRIES = 5

/**
 * Covers `/proc`, which virtiofsd needs only while it starts. A root of the guest could otherwise write the memory of
 * virtiofsd there, and would run its own code on the host's kernel.
 */
async function hideProcesses(mounts: LiveMounts | undefined): Promise<void> {
  const path = '/proc'
  let result: HoldResult | undefined
  for (let i = 0; i < MOST_TRIES && result !== 'held'; i++) {
    const found = mounts?.look(path)
    if (mounts === undefined || found === undefined) break
    ;[result] = await mounts.hold([{ how: 'cover', path, dev: found.dev, ino: found.ino }])
  }
  if (result !== 'held') throw new Error(`${path} of the file server could not be covered`)
}

/** The name servers of the other backends are on the sandbox's own loopback, which a guest does not share. */
function servedPlan(files: GuestFiles, plan: Plan): Plan {
  const steps = plan.steps.map(
    (step): Step =>
      step.op === 'file' && step.at === '/etc/resolv.conf'
        ? { ...step, text: step.text.replace('127.0.0.1', GUEST_NETWORK.gateway) }
        : step,
  )
  return {
    ...plan,
    steps: [
      ...steps.slice(0, -1),
      shown(files.dir, MACHINE_FILES),
      shown(process.execPath, PEN_INSIDE),
      ...steps.slice(-1),
    ],
    cwd: '/' as GuestPath,
    env: [],
    // The guest's kernel enforces it.
    listedExec: false,
    limits: { ...plan.limits, files: MOST_FILES },
  }
}

/** `why` is the system's: the files are shown as root's. */
export const shown = (from: string, at: string): Step => ({
  op: 'bind',
  from: from as HostPath,
  at: at as GuestPath,
  mode: 'ro',
  why: 'system',
})

/**
 * One server caches everything: programs and scratch, which only the guest changes. The other serves the project, where
 * the host's changes must be seen. When one ends, it takes the other along, and so the sandbox.
 */
function bothServers(files: GuestFiles, { user, workspace }: Plan, firstFd: number, root: boolean): string[] {
  const tree = serverWords(files, user, { fd: firstFd, cache: 'always', root })
  const project = serverWords(files, user, { fd: firstFd + 1, cache: 'auto', root })
  const end = (name: string): string =>
    `echo "the server of the ${name} ended with exit code $?" >&2; kill -9 -1`
  const script = `(${tree} --shared-dir /; ${end('tree')}) & ${project} --shared-dir "$1"; ${end('project')}`
  return [`${MACHINE_FILES}/${BUSYBOX}`, 'sh', '-c', script, 'sh', workspace]
}

/**
 * Words without a character that a shell reads. Every user of the guest writes as the sandbox's one user. Files of
 * other users, who have no id inside, are shown as root's. When commands are root, so are their files.
 */
function serverWords(
  { server }: GuestFiles,
  { uid, gid }: Plan['user'],
  { fd, cache, root }: { readonly fd: number; readonly cache: 'always' | 'auto'; readonly root: boolean },
): string {
  const program = server.map(word => (/^[-/]/.test(word) ? word : `${MACHINE_FILES}/${word}`))
  const owner = (id: number): string[] => [
    `squash-guest:0:${id}:4294967295`,
    'host:65534:0:1',
    ...(root ? [`host:${id}:0:1`] : []),
  ]
  return [
    ...program,
    ...['--fd', String(fd), '--sandbox', 'none', '--cache', cache],
    ...['--inode-file-handles=never', '--log-level', 'error'],
    // An overlay accepts one file system, and no mounts that appear in it.
    ...(root && cache === 'always' ? ['--no-announce-submounts'] : []),
    ...owner(uid).flatMap(rule => ['--translate-uid', rule]),
    ...owner(gid).flatMap(rule => ['--translate-gid', rule]),
  ].join(' ')
}

/** A listener for virtiofsd with one connection in its queue, which is QEMU's. No other process can connect. */
function connectedPair(stateDir: string): { readonly listener: number; readonly connection: number } {
  const dir = mkdtempSync(`${stateDir}/.vm-`)
  // A socket's path is limited to 107 bytes. The path through the open directory is short.
  const opened = openSync(dir, 'r')
  const path = `/proc/self/fd/${opened}/files`
  try {
    const listener = listenAtPath(path, 1)
    const connection = systemCall('socket', AF.unix, SOCK.stream | SOCK.cloexec, 0)
    const name = unixName(path)
    systemCall('connect', connection, name, name.length)
    return { listener, connection }
  } finally {
    closeSync(opened)
    rmSync(dir, { recursive: true, force: true })
  }
}
