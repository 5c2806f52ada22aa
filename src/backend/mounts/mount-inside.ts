/**
 * pen in its hidden mode, started by pen inside the mount namespace of a running sandbox: it covers, protects or furnishes
 * the places that it is told on stdin, says how that went, and ends. Its root directory is the host's, so that nothing of
 * the sandbox's files is run or read; the sandbox cannot see it, because it is outside its process namespace.
 */
import { chownSync, closeSync, constants, fstatSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { EXIT, type ExitCode, errnoOf, PenError } from '../../base/error.ts'
import type { HoldRequest, HoldResult } from '../backend.ts'
import { SystemCallError } from '../process/libc.ts'
import { type Found, findBeneath, O_PATH } from './beneath-root.ts'
import type { ProgramAnswer, ProgramOrder } from './hide-programs.ts'
import { attach, bind, mountScratch, NOEXEC, NOSUID_NODEV, RDONLY, setAttributes } from './mount-calls.ts'

/** The word after `pen`. By itself it can do nothing: the descriptor below must be there too. */
export const MOUNT_MODE = '__mount'
/** The sandbox's root directory. */
export const ROOT_FD = 5
/** Detached mounts, in the order in which they were handed over. */
const FIRST_TREE_FD = 6

export type MountOrder = What & {
  readonly path: string
  /** In decimal. The file that the host has there: nothing else is ever mounted on. */
  readonly dev: string
  readonly ino: string
}

/** For places that are pen's own, in a sandbox in which nothing runs yet. */
export const WHATEVER_IS_THERE = { dev: 'any', ino: 'any' } as const

type What =
  | { readonly how: HoldRequest['how'] }
  /** A mount of its own, as it is: a directory that can be neither renamed nor replaced. */
  | { readonly how: 'pin' }
  /** Writable, in a mount that is not. */
  | { readonly how: 'open' }
  /** Nothing of the mount that begins there can be executed; nor of any below. */
  | { readonly how: 'noexec'; readonly below?: true }
  | { readonly how: 'exec' }
  /** The mount that begins there honours no setuid bit and no device. */
  | { readonly how: 'restrict'; readonly mode: 'ro' | 'rw' }
  /** Puts a detached mount there, by its number in the order of handing over. */
  | { readonly how: 'place'; readonly tree: number }
  | { readonly how: 'give'; readonly uid: number; readonly gid: number }

/** Written by pen itself, over a pipe that nobody else has. */
export interface MountOrders {
  /** An empty file that nobody may open, in the sandbox. */
  readonly nothing: string
  readonly orders: readonly MountOrder[]
  /** After these. */
  readonly programs?: ProgramOrder
}

export interface MountAnswer {
  readonly results: readonly HoldResult[]
  readonly programs?: ProgramAnswer
}

const READ_ONLY = RDONLY | NOSUID_NODEV
const ENOENT = 2

export async function mountInside(): Promise<ExitCode> {
  if (!isDirectory(ROOT_FD))
    throw new PenError('USAGE', { what: `${MOUNT_MODE} is not a verb: pen starts it by itself` })
  const { nothing, orders, programs } = JSON.parse(readFileSync(0, 'utf8')) as MountOrders
  const results = orders.map(order => carryOut(order, nothing))
  const hidden = programs === undefined ? undefined : await hide(programs, nothing)
  const answer: MountAnswer = hidden === undefined ? { results } : { results, programs: hidden }
  writeFileSync(1, JSON.stringify(answer))
  return EXIT.ok
}

async function hide(programs: ProgramOrder, nothing: string): Promise<ProgramAnswer> {
  const { hidePrograms } = await import('./hide-programs.ts')
  return hidePrograms(programs, ROOT_FD, nothing)
}

function carryOut(order: MountOrder, nothing: string): HoldResult {
  try {
    return (
      findBeneath(ROOT_FD, order.path, found => {
        if (!isMeant(order, found)) return 'changed'
        return act(order, found, nothing)
      }) ?? 'changed'
    )
  } catch (error) {
    // Removed between the look and the mount.
    if (error instanceof SystemCallError && error.errno === ENOENT) return 'changed'
    if (error instanceof SystemCallError) return { failed: error.message }
    throw error
  }
}

const isMeant = ({ dev, ino }: MountOrder, found: Found): boolean =>
  found.kind !== 'link' &&
  (dev === WHATEVER_IS_THERE.dev || (String(found.dev) === dev && String(found.ino) === ino))

function act(order: MountOrder, found: Found, nothing: string): HoldResult {
  switch (order.how) {
    case 'cover':
      cover(found, nothing)
      break
    case 'protect':
      if (!found.mountPoint) bind(found.fd, found.fd, READ_ONLY)
      break
    case 'pin':
      if (!found.mountPoint) bind(found.fd, found.fd, NOSUID_NODEV)
      break
    case 'open':
      bind(found.fd, found.fd, NOSUID_NODEV, RDONLY)
      break
    case 'noexec':
      setAttributes(found.fd, NOEXEC, { below: order.below === true })
      break
    case 'exec':
      setAttributes(found.fd, 0, { without: NOEXEC })
      break
    case 'restrict':
      if (!found.mountPoint) return 'changed'
      setAttributes(found.fd, order.mode === 'ro' ? READ_ONLY : NOSUID_NODEV)
      break
    case 'place':
      attach(FIRST_TREE_FD + order.tree, found.fd)
      break
    case 'give':
      chownSync(`/proc/self/fd/${found.fd}`, order.uid, order.gid)
  }
  return 'held'
}

function cover({ fd, kind }: Found, empty: string): void {
  if (kind === 'directory') {
    mountScratch(fd, 'mode=000,size=4k,nr_inodes=2', READ_ONLY | NOEXEC)
    return
  }
  const nothing = openSync(`/proc/self/fd/${ROOT_FD}${empty}`, O_PATH | constants.O_NOFOLLOW)
  try {
    bind(nothing, fd, READ_ONLY)
  } finally {
    closeSync(nothing)
  }
}

function isDirectory(fd: number): boolean {
  try {
    return fstatSync(fd).isDirectory()
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}
