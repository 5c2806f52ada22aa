/**
 * How a guest enters its sandbox. Until then it is the same for all: it may come from a snapshot, with an old clock and
 * with the random pool of every other guest of that snapshot.
 */
import { closeSync, openSync, rmSync, writeSync } from 'node:fs'
import { cString, tryCall } from '../base/kernel/system-call.ts'
import { type GuestLine, TAG } from '../protocol/guest-line.ts'
import { MACHINE_FILES } from '../protocol/guest-paths.ts'
import { required } from './become.ts'
import { mountOwnSystem } from './own-system.ts'

const CLOCK_REALTIME = 0
const RNDRESEEDCRNG = 0x5207
const RLIMIT = { core: 4, nproc: 6, nofile: 7 } as const
const MS = { readonly: 1, nosuid: 2, nodev: 4, noexec: 8, move: 8192 } as const
/** The tree is mounted here, and becomes the root. */
const TREE = '/root'
/** Files are plugged in while the guest waits. The kernel finds them within a moment. */
const PATIENCE_MS = 20_000
const LOOK_MS = 3

export function enterSandbox({ project, processes, files, root, shared, time, seed }: GuestLine): void {
  setClock(time)
  reseed(seed)
  const serve = (at: string): void => mountWhenThere(TAG.tree, at)
  if (root === null) serve(TREE)
  else mountOwnSystem(TREE, root, mount, serve)
  mountWhenThere(TAG.project, `${TREE}${project}`)
  mount('proc', 'proc', `${TREE}/proc`, MS.nosuid | MS.nodev | MS.noexec)
  mount('devtmpfs', 'devtmpfs', `${TREE}/dev`, MS.nosuid | MS.noexec)
  mount('devpts', 'devpts', `${TREE}/dev/pts`, MS.nosuid | MS.noexec, 'gid=5,mode=620,ptmxmode=666')
  mount('tmpfs', 'tmpfs', `${TREE}/dev/shm`, MS.nosuid | MS.nodev, `mode=1777,size=${shared}`)
  // Hundreds of megabytes that only virtiofsd needs: a search of `/` would read them.
  mount('tmpfs', 'tmpfs', `${TREE}${MACHINE_FILES}`, MS.readonly | MS.nosuid | MS.nodev | MS.noexec)
  rmSync('/bin', { recursive: true, force: true })
  // With a chroot alone no command could make a user namespace.
  process.chdir(TREE)
  check('the move of its root', tryCall('mount', cString('.'), cString('/'), null, MS.move, null))
  check('chroot', tryCall('chroot', cString('.')))
  process.chdir('/')
  limit(RLIMIT.core, 0)
  limit(RLIMIT.nproc, processes)
  limit(RLIMIT.nofile, files)
}

function setClock(time: number): void {
  const clock = new BigInt64Array([BigInt(Math.floor(time / 1000)), BigInt((time % 1000) * 1_000_000)])
  check('clock_settime', tryCall('clock_settime', CLOCK_REALTIME, clock))
}

/** Mixes the seed into the pool, and makes the kernel use it from here on. */
function reseed(seed: string): void {
  const random = openSync('/dev/urandom', 'r+')
  writeSync(random, seed)
  check('RNDRESEEDCRNG', tryCall('ioctl', random, RNDRESEEDCRNG, 0))
  closeSync(random)
}

function mountWhenThere(tag: string, at: string): void {
  const late = performance.now() + PATIENCE_MS
  for (;;) {
    const result = tryCall(
      'mount',
      cString(tag),
      cString(at),
      cString('virtiofs'),
      MS.nosuid | MS.nodev,
      null,
    )
    if (result >= 0) return
    if (performance.now() > late) check(`the mount of ${at}`, result)
    Bun.sleepSync(LOOK_MS)
  }
}

function mount(kind: string, from: string, at: string, flags: number, options = ''): void {
  const result = tryCall('mount', cString(from), cString(at), cString(kind), flags, cString(options))
  check(`the mount of ${at}`, result)
}

const limit = (resource: number, most: number): number =>
  check('prlimit', tryCall('prlimit64', 0, resource, new BigUint64Array([BigInt(most), BigInt(most)]), null))

const check = (call: string, result: number): number =>
  required('the guest could not enter its sandbox', call, result)
