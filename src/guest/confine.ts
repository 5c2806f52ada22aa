/**
 * The exec daemon drops what it does not need before it takes the first order, and checks the result. Capabilities
 * belong to a thread: this one, which starts every command. The seccomp filter covers all threads.
 */
import { ptr } from 'bun:ffi'
import { PenError } from '../base/error.ts'
import { AT_FDCWD } from '../base/kernel/descriptor.ts'
import { cString, tryCall } from '../base/kernel/system-call.ts'
import type { DaemonSetup } from '../protocol/exec-order.ts'
import { readSmallFile, required } from './become.ts'
import { boundProcesses } from './bound-processes.ts'
import { restrictExecution } from './landlock.ts'
import { makeMountsNoexec } from './noexec-mounts.ts'

const PR = {
  setDumpable: 4,
  boundingRead: 23,
  boundingDrop: 24,
  setNoNewPrivs: 38,
  getNoNewPrivs: 39,
  ambient: 47,
}
const AMBIENT_CLEAR_ALL = 4
const CAPABILITY_VERSION_3 = 0x2008_0522
const SECCOMP_SET_MODE_FILTER = 1
const SECCOMP_FILTER_FLAG_TSYNC = 1
const EINVAL = 22
const AT_SYMLINK_NOFOLLOW = 0x100

/**
 * To start commands as another user, to kill them, and to enter their directories when that was granted. CHOWN and
 * SETPCAP are not needed any more.
 */
const KEPT = (1 << 2) | (1 << 5) | (1 << 6) | (1 << 7) // DAC_READ_SEARCH, KILL, SETGID, SETUID

export function confine(setup: DaemonSetup): void {
  // The guest's kernel is the sandbox's own, and it confines nothing there.
  if (setup.root === true) return
  // Before directories change their owner: one of them may be needed for this.
  if (setup.processes !== undefined) boundProcesses(setup.processes)
  if (setup.user !== undefined) {
    check('setgroups', tryCall('setgroups', 0, 0))
    for (const directory of setup.userDirectories) changeOwner(directory, setup.user)
  }
  if (setup.noexec !== undefined) makeMountsNoexec(setup.noexec)
  if (setup.emptyBounding) emptyBoundingSet()
  keepOnly(setup.user === undefined ? 0 : KEPT)
  check('PR_SET_DUMPABLE', tryCall('prctl', PR.setDumpable, 0, 0, 0, 0))
  check('PR_SET_NO_NEW_PRIVS', tryCall('prctl', PR.setNoNewPrivs, 1, 0, 0, 0))
  // For this thread, which starts every command.
  if (setup.executable !== undefined) restrictExecution(setup.executable)
  if (setup.seccomp !== undefined) installFilter(setup.seccomp)
  verify(setup)
}

/** Changes the directory itself, and not the target of a link in the image. Nothing of the sandbox has run yet. */
function changeOwner(directory: string, { uid, gid }: { uid: number; gid: number }): void {
  const result = tryCall('fchownat', AT_FDCWD, cString(directory), uid, gid, AT_SYMLINK_NOFOLLOW)
  if (result >= 0) return
  const owner = process.getBuiltinModule('node:fs').lstatSync(directory)
  if (owner.uid !== uid || owner.gid !== gid) check('chown', result)
}

/** After this no executed program can gain a capability, neither by file capabilities nor as root. */
function emptyBoundingSet(): void {
  for (let capability = 0; capability < 64; capability++) {
    const held = tryCall('prctl', PR.boundingRead, capability, 0, 0, 0)
    if (held === -EINVAL) return
    if (held === 1) check('PR_CAPBSET_DROP', tryCall('prctl', PR.boundingDrop, capability, 0, 0, 0))
  }
}

/** struct { version, pid } and two of { effective, permitted, inheritable }, the lower 32 bits of each first. */
function keepOnly(kept: number): void {
  const header = new Uint8Array(new Uint32Array([CAPABILITY_VERSION_3, 0]).buffer)
  const sets = new Uint32Array(6)
  check('capget', tryCall('capget', header, new Uint8Array(sets.buffer)))
  const keep = (sets[1] ?? 0) & kept
  sets.set([keep, keep, 0, 0, 0, 0])
  tryCall('prctl', PR.ambient, AMBIENT_CLEAR_ALL, 0, 0, 0)
  check('capset', tryCall('capset', header, new Uint8Array(sets.buffer)))
}

/** struct sock_fprog { u16 instructions; void *program }. */
function installFilter(filter: Uint8Array): void {
  const program = Buffer.alloc(16)
  program.writeUInt16LE(filter.length / 8, 0)
  program.writeBigUInt64LE(BigInt(ptr(filter)), 8)
  check('seccomp', tryCall('seccomp', SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program))
}

function verify(setup: DaemonSetup): void {
  const status = readSmallFile('/proc/self/status')
  const value = (name: string): string | undefined =>
    new RegExp(`^${name}:\\s*(\\S+)$`, 'm').exec(status)?.[1]
  const expected = [
    ['CapInh', NONE],
    ...(setup.emptyBounding ? [['CapBnd', NONE]] : []),
    ...(setup.seccomp === undefined ? [] : [['Seccomp', '2']]),
  ] as const
  for (const [name = '', wanted] of expected) if (value(name) !== wanted) throw notConfined(name, value(name))
  // gVisor's kernel does not list these two, and lacks the second.
  const privileges = tryCall('prctl', PR.getNoNewPrivs, 0, 0, 0, 0)
  if (privileges !== 1) throw notConfined('NoNewPrivs', String(privileges))
  const ambient = value('CapAmb') ?? NONE
  if (ambient !== NONE) throw notConfined('CapAmb', ambient)
}

const NONE = '0'.repeat(16)

const notConfined = (name: string, value: string | undefined): PenError =>
  new PenError('BACKEND', { what: `the exec daemon is not confined: ${name} is ${value}` })

const check = (call: string, result: number): number =>
  required('the exec daemon is not confined', call, result)
