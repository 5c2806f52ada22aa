/**
 * Limits the processes of a sandbox by the pids controller of its own kernel. Only gVisor needs this: the host's kernel
 * counts gVisor's threads, not the processes inside. gVisor does not enforce RLIMIT_NPROC.
 */
import { AT_FDCWD } from '../base/kernel/descriptor.ts'
import { cString, tryCall } from '../base/kernel/system-call.ts'
import { readSmallFile, required } from './become.ts'

const O_WRONLY_CLOEXEC = 0o2000001
/** In scratch of the sandbox. It belongs to root, so no command can enter or write it. */
const PLACE = '/run/pen.processes'
const BOUNDED = `${PLACE}/sandbox`

/**
 * Allows `processes` besides the exec daemon's threads. The exec daemon moves itself, so every command starts inside.
 * It needs SYS_ADMIN, so it runs before `confine`.
 */
export function boundProcesses(processes: number): void {
  makeDirectory(PLACE)
  check('mount', tryCall('mount', cString('none'), cString(PLACE), cString('cgroup'), 0, cString('pids')))
  makeDirectory(BOUNDED)
  write('cgroup.procs', process.pid)
  write('pids.max', read('pids.current') + processes)
}

/** gVisor does not count refused forks, so this checks whether the limit is reached. */
export const isFull = (): boolean => read('pids.current') >= read('pids.max')

/** By system calls: gVisor's cgroup files do not support `statx`, which node:fs uses. */
const makeDirectory = (path: string): number =>
  check('mkdir', tryCall('mkdirat', AT_FDCWD, cString(path), 0o700))

function write(file: string, value: number): void {
  const fd = check(file, tryCall('openat', AT_FDCWD, cString(`${BOUNDED}/${file}`), O_WRONLY_CLOEXEC))
  const bytes = new TextEncoder().encode(String(value))
  check(file, tryCall('write', fd, bytes, bytes.length))
  tryCall('close', fd)
}

const read = (file: string): number => Number.parseInt(readSmallFile(`${BOUNDED}/${file}`), 10)

const check = (call: string, result: number): number =>
  required(
    'gVisor could not limit the number of processes',
    call,
    result,
    'use runsc of December 2022 or newer, or isolation "container"',
  )
