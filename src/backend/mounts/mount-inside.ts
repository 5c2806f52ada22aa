/**
 * A hidden mode of pen that runs inside the mount namespace of a running sandbox. It carries out the orders on stdin,
 * reports the results, and exits. Its root directory is the host's, so it runs and reads no file of the sandbox. It is
 * outside the sandbox's PID namespace, so the sandbox cannot see it.
 */
import { fstatSync, readFileSync, writeFileSync } from 'node:fs'
import { EXIT, type ExitCode, errnoOf, PenError } from '../../base/error.ts'
import type { HoldResult } from '../backend.ts'
import type { ProgramAnswer, ProgramOrder } from './hide-programs.ts'
import { carryOutOrder, type MountOrder } from './mount-orders.ts'

/** The word after `pen`. The mode also needs the descriptor below. */
export const MOUNT_MODE = '__mount'
/** The sandbox's root directory. */
export const ROOT_FD = 5
/** Detached mounts, in the order in which they were passed. */
const FIRST_TREE_FD = 6

/** Written by pen itself, over a pipe that only pen has. */
export interface MountOrders {
  /** The path of an empty file without permissions in the sandbox. */
  readonly emptyFile: string
  readonly orders: readonly MountOrder[]
  /** The number of detached mounts that were passed. */
  readonly trees: number
  /** Carried out after `orders`. */
  readonly programs?: ProgramOrder
}

export interface MountAnswer {
  readonly results: readonly HoldResult[]
  readonly programs?: ProgramAnswer
}

export async function mountInside(): Promise<ExitCode> {
  if (!isDirectory(ROOT_FD))
    throw new PenError('USAGE', { what: `${MOUNT_MODE} is not a verb: pen starts it by itself` })
  const { emptyFile, orders, trees, programs } = JSON.parse(readFileSync(0, 'utf8')) as MountOrders
  const handed = Array.from({ length: trees }, (_, i) => FIRST_TREE_FD + i)
  const results = orders.map(order => carryOutOrder(order, { root: ROOT_FD, emptyFile, trees: handed }))
  const hidden = programs === undefined ? undefined : await hide(programs, emptyFile)
  const answer: MountAnswer = hidden === undefined ? { results } : { results, programs: hidden }
  writeFileSync(1, JSON.stringify(answer))
  return EXIT.ok
}

async function hide(programs: ProgramOrder, emptyFile: string): Promise<ProgramAnswer> {
  const { hidePrograms } = await import('./hide-programs.ts')
  return hidePrograms(programs, ROOT_FD, emptyFile)
}

function isDirectory(fd: number): boolean {
  try {
    return fstatSync(fd).isDirectory()
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}
