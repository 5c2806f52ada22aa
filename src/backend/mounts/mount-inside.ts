/**
 * A hidden mode of pen that runs inside the mount namespace of a running sandbox. It carries out the orders on stdin,
 * reports the results, and exits. Its root directory is the host's, so it runs and reads no file of the sandbox. It is
 * outside the sandbox's PID namespace, so the sandbox cannot see it.
 */
import { fstatSync, readFileSync, writeFileSync } from 'node:fs'
import { EXIT, type ExitCode, errnoOf, PenError } from '../../base/error.ts'
import { hidePrograms } from './hide-programs.ts'
import { carryOutOrder, MOUNT_MODE, type MountAnswer, type MountOrders } from './mount-orders.ts'

/** The sandbox's root directory. Without it the mode refuses to run. */
const ROOT_FD = 5
/** Detached mounts, in the order in which they were passed. */
const FIRST_TREE_FD = 6

export async function mountInside(): Promise<ExitCode> {
  if (!isDirectory(ROOT_FD))
    throw new PenError('USAGE', { what: `${MOUNT_MODE} is not a verb: pen starts it by itself` })
  const { emptyFile, orders, trees, programs } = JSON.parse(readFileSync(0, 'utf8')) as MountOrders
  const handed = Array.from({ length: trees }, (_, i) => FIRST_TREE_FD + i)
  const results = orders.map(order => carryOutOrder(order, { root: ROOT_FD, emptyFile, trees: handed }))
  const answer: MountAnswer =
    programs === undefined ? { results } : { results, programs: hidePrograms(programs, ROOT_FD, emptyFile) }
  writeFileSync(1, JSON.stringify(answer))
  return EXIT.ok
}

function isDirectory(fd: number): boolean {
  try {
    return fstatSync(fd).isDirectory()
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return false
  }
}
