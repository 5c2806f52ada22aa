/** The descriptors that pen opens before the guard starts: bubblewrap and the sandbox inherit them. */
import { closeSync, writeSync } from 'node:fs'
import { errnoOf } from '../../base/error.ts'
import { memoryFile, pipe } from '../../base/kernel/descriptor.ts'
import type { UndoStack } from '../../base/undo.ts'
import { writeAll } from '../../base/write-all.ts'
import type { Plan } from '../../plan/plan.ts'
import type { StartOptions } from '../backend.ts'
import type { Identity } from '../mounts/id-mapping.ts'
import type { ProcessDaemon } from './exec-daemon.ts'
import { bwrapFds } from './guard.ts'
import { mountLayerFirst } from './layer-mount.ts'
import { type Listed, startListed } from './listed.ts'
import { pinnedDescriptors } from './pinned.ts'
import { Staging } from './staging.ts'
import { type Crossing, crossStdio } from './stdio.ts'

export interface BwrapInputs {
  /** The user that root becomes. Undefined when pen is not root. */
  readonly identity: Identity | undefined
  /** Only for root. Later steps fill and leave it. */
  readonly staging: Staging | undefined
  readonly args: ArgumentPipe
  /** A file in memory, filled when the filter is known. */
  readonly seccompFd: number
  /** Open descriptors of paths inside the workspace. */
  readonly pinned: ReadonlyMap<string, number>
  readonly crossing: Crossing
  readonly daemon: ProcessDaemon | undefined
  readonly listed: Listed | undefined
  /** Words in front of bubblewrap that mount the review layer. Root mounts it while staging. */
  readonly layerMount: readonly string[]
  /** The number that the first descriptor of `daemon` or `listed` has in bubblewrap. */
  readonly firstGuestFd: number
}

export function openInputs(
  plan: Plan,
  { stdio, placement }: Pick<StartOptions, 'stdio' | 'placement'>,
  daemon: ProcessDaemon | undefined,
  undo: UndoStack,
): BwrapInputs {
  const identity = plan.runAs === 'self' ? undefined : plan.runAs
  const staging = identity === undefined ? undefined : new Staging(identity, undo, plan.layer)
  const args = new ArgumentPipe(undo)
  const seccompFd = openMemoryFile(undo)
  const pinned = staging === undefined ? pinnedDescriptors(plan, undo) : new Map<string, number>()
  const crossing = crossStdio(daemon?.stdio ?? stdio, identity)
  undo.push('stdio', () => crossing.closeCopies())
  const listed =
    daemon === undefined && plan.listedExec
      ? startListed(plan, bytes => filledMemoryFile(bytes, undo), undo)
      : undefined
  const layerMount = staging === undefined ? mountLayerFirst(plan.layer) : []
  const firstGuestFd = bwrapFds(placement.joinFds.length).firstExtra + pinned.size
  return { identity, staging, args, seccompFd, pinned, crossing, daemon, listed, layerMount, firstGuestFd }
}

/** Carries the arguments of bubblewrap, which starts before they are known. */
class ArgumentPipe {
  /** Bubblewrap's end. The caller closes it after the guard has its copy. */
  readonly reader: number
  readonly #writer: number
  #open: boolean = true

  constructor(undo: UndoStack) {
    const [reader, writer] = pipe()
    this.reader = reader
    this.#writer = writer
    undo.push('the argument pipe', () => this.#close())
  }

  send(args: readonly string[]): void {
    try {
      writeAll(this.#writer, `${args.join('\0')}\0`)
    } catch (error) {
      // Bubblewrap has ended. Its exit says why.
      if (errnoOf(error) !== 'EPIPE') throw error
    } finally {
      this.#close()
    }
  }

  #close(): void {
    if (this.#open) closeSync(this.#writer)
    this.#open = false
  }
}

/** A file in memory, which has no path on a disk. */
function openMemoryFile(undo: UndoStack): number {
  const fd = memoryFile()
  undo.push('a memory file', () => closeSync(fd))
  return fd
}

function filledMemoryFile(bytes: Uint8Array, undo: UndoStack): number {
  const fd = openMemoryFile(undo)
  fillMemoryFile(fd, bytes)
  return fd
}

/** Writes at an offset, so that the child reads from the beginning. */
export function fillMemoryFile(fd: number, bytes: Uint8Array): void {
  for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done, bytes.length - done, done)
}
