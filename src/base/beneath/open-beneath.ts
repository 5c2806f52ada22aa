/**
 * Opens what stands at a path, while hostile processes may be swapping every part of it. One call of the kernel resolves the
 * path below an open directory, through no link and onto no other mount; where that call is missing, each component is
 * opened by itself. Either way the answer is about a place beneath the directory, or there is none.
 */
import { closeSync, constants, fstatSync, openSync, readFileSync } from 'node:fs'
import { errnoOf } from '../error.ts'
import { openat2 } from '../kernel/file.ts'

export const O_PATH = 0o10000000
const { O_DIRECTORY, O_NOFOLLOW } = constants
const NO_XDEV = 0x01
const NO_MAGICLINKS = 0x02
const NO_SYMLINKS = 0x04
const BENEATH = 0x08

/** The kernel may ask for another try when directories are being renamed; a sandbox that renames all day gets a refusal. */
const TRIES = 8

/** A descriptor that can be asked what it is, and opened again, but neither read nor written: a pipe or device is not touched. */
export function openBeneath(root: number, names: readonly string[]): number {
  for (let tries = 0; tries < TRIES; tries++) {
    try {
      return openat2(
        root,
        names.join('/') || '.',
        O_PATH | O_NOFOLLOW,
        BENEATH | NO_SYMLINKS | NO_MAGICLINKS | NO_XDEV,
      )
    } catch (error) {
      const errno = errnoOf(error)
      if (errno === 'ENOSYS' || errno === 'EPERM' || errno === 'E2BIG') return walkBeneath(root, names)
      if (errno !== 'EAGAIN') throw error
    }
  }
  return walkBeneath(root, names)
}

/** The same for a kernel, or a filter around pen, that does not have the call. */
export function walkBeneath(root: number, names: readonly string[]): number {
  let at = openSync(`/proc/self/fd/${root}`, O_PATH | O_DIRECTORY)
  try {
    const mount = mountOf(at)
    for (const [i, name] of names.entries()) {
      const next = openSync(`/proc/self/fd/${at}/${name}`, O_PATH | O_NOFOLLOW)
      closeSync(at)
      at = next
      if (mountOf(at) !== mount) throw failure('EXDEV')
      if (i < names.length - 1) requireDirectory(at)
    }
    return at
  } catch (error) {
    closeSync(at)
    throw error
  }
}

function requireDirectory(fd: number): void {
  const stats = fstatSync(fd)
  if (stats.isSymbolicLink()) throw failure('ELOOP')
  if (!stats.isDirectory()) throw failure('ENOTDIR')
}

const failure = (code: string): Error => Object.assign(new Error(code), { code })

/** A directory of the host by its canonical path, if there is still no link on the way. */
export function openDirectory(path: string): number {
  const names = path.split('/').filter(name => name !== '')
  const top = openSync('/', O_PATH | O_DIRECTORY)
  try {
    return openat2(top, names.join('/') || '.', O_PATH | O_DIRECTORY, NO_SYMLINKS | NO_MAGICLINKS)
  } catch (error) {
    const errno = errnoOf(error)
    if (errno !== 'ENOSYS' && errno !== 'EPERM') throw error
    return walkAnywhere(top, names)
  } finally {
    closeSync(top)
  }
}

function walkAnywhere(top: number, names: readonly string[]): number {
  let at = openSync(`/proc/self/fd/${top}`, O_PATH | O_DIRECTORY)
  for (const name of names) {
    const above = at
    try {
      at = openSync(`/proc/self/fd/${above}/${name}`, O_PATH | O_DIRECTORY | O_NOFOLLOW)
    } finally {
      closeSync(above)
    }
  }
  return at
}

export function identityOf(fd: number): { readonly dev: bigint; readonly ino: bigint } {
  const { dev, ino } = fstatSync(fd, { bigint: true })
  return { dev, ino }
}

const mountOf = (fd: number): string | undefined =>
  /^mnt_id:\s*(\d+)/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, 'latin1'))?.[1]
