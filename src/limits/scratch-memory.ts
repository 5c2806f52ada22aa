/** Memory that no process reports: files on the sandbox's tmpfs, and memfds that are only held open. */
import { readlinkSync, statfsSync, statSync } from 'node:fs'
import { readKernelFile } from '../base/kernel/kernel-file.ts'
import { descriptorsOf, type Member } from '../base/kernel/processes.ts'
import { type MountEntry, parseMounts } from '../base/mount-table.ts'

/** Where a sandbox has its scratch: the first process that sees it, and a path to that process's root directory. */
export interface ScratchPlace {
  readonly init: number
  readonly root: string
}

/** Mount points of tmpfs that only the sandbox has, which pen made for it. */
export function scratchMounts(init: number): string[] {
  const host = new Set(mountsOf('self').map(({ device }) => device))
  const points = new Map<string, string>()
  // A file system that is mounted at several places counts once.
  for (const { device, type, point } of mountsOf(init))
    if (type === 'tmpfs' && !host.has(device) && !points.has(device)) points.set(device, point)
  return [...points.values()]
}

function mountsOf(pid: number | 'self'): readonly MountEntry[] {
  try {
    return parseMounts(readKernelFile(`/proc/${pid}/mountinfo`, 'utf8'))
  } catch {
    return []
  }
}

/** An empty file takes no block, but about this much kernel memory. A million of them take a gigabyte. */
const BYTES_PER_NAME = 1024

/** pen made and sealed these mounts, so nothing inside can turn their paths into links. */
export function scratchBytes(root: string, mounts: readonly string[]): number {
  let sum = 0
  for (const point of mounts)
    try {
      const { blocks, bfree, bsize, files, ffree } = statfsSync(`${root}${point}`)
      sum += (blocks - bfree) * bsize + (files - ffree) * BYTES_PER_NAME
    } catch {
      // The sandbox has ended.
    }
  return sum
}

/** The limit of one look: about 50 ms. */
const MOST_DESCRIPTORS = 20_000

/**
 * Memory files (memfd) by descriptor. A sandbox can hold more descriptors than one look reads. The next look continues where
 * the last one stopped, so that no number of descriptors hides a file.
 */
export class MemoryFiles {
  readonly #most: number
  /** Bytes by file, of the last complete round and of the current one. */
  #before = new Map<string, number>()
  #now = new Map<string, number>()
  /** What is left of this round. */
  #left: Member[] = []
  #paths: string[] = []

  constructor(most = MOST_DESCRIPTORS) {
    this.#most = most
  }

  look(members: readonly Member[]): number {
    if (this.#isRoundOver) this.#begin(members)
    for (let left = this.#most; left > 0 && !this.#isRoundOver; left--) this.#lookAtNext()
    if (this.#isRoundOver) this.#before = new Map()
    return sumOf(new Map([...this.#before, ...this.#now]))
  }

  get #isRoundOver(): boolean {
    return this.#left.length === 0
  }

  #begin(members: readonly Member[]): void {
    this.#before = this.#now
    this.#now = new Map()
    this.#left = [...members]
    this.#paths = this.#descriptors()
  }

  #lookAtNext(): void {
    const path = this.#paths.pop()
    if (path === undefined) {
      this.#left.pop()
      this.#paths = this.#descriptors()
      return
    }
    try {
      if (!readlinkSync(path).startsWith('/memfd:')) return
      const { dev, ino, blocks } = statSync(path)
      this.#now.set(`${dev}:${ino}`, blocks * 512)
    } catch {
      // Closed since it was listed.
    }
  }

  #descriptors(): string[] {
    const member = this.#left.at(-1)
    return member === undefined ? [] : descriptorsOf(member.pid)
  }
}

const sumOf = (sizes: ReadonlyMap<string, number>): number =>
  [...sizes.values()].reduce((sum, bytes) => sum + bytes, 0)
