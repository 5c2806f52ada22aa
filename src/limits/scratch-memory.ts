/** Memory that no process shows: files on the sandbox's own tmpfs, and memory files that are only held by descriptor. */
import { readFileSync, readlinkSync, statfsSync, statSync } from 'node:fs'
import { descriptorsOf, type Member } from '../base/kernel/processes.ts'

/** Mount points of tmpfs in the sandbox that the host does not have: what pen made for it. */
export function scratchMounts(init: number): string[] {
  const host = new Set(mountsOf('self').map(({ device }) => device))
  return mountsOf(String(init))
    .filter(({ device, type }) => type === 'tmpfs' && !host.has(device))
    .map(({ point }) => point)
}

function mountsOf(pid: string): { device: string; type: string; point: string }[] {
  let text: string
  try {
    text = readFileSync(`/proc/${pid}/mountinfo`, 'utf8')
  } catch {
    return []
  }
  const seen = new Set<string>()
  return text.split('\n').flatMap(line => {
    const [, , device = '', , point = ''] = line.split(' ', 5)
    const type = / - (\S+)/.exec(line)?.[1] ?? ''
    // One file system mounted at several places is counted once.
    if (device === '' || point.includes('\\') || seen.has(device)) return []
    seen.add(device)
    return [{ device, type, point }]
  })
}

/** An empty file takes no block, and about this much of the kernel's own memory: a million of them is a gigabyte. */
const BYTES_PER_NAME = 1024

/** The mounts are pen's own and sealed: none of these names can be turned into a link from inside. */
export function scratchBytes(root: string, mounts: readonly string[]): number {
  let sum = 0
  for (const point of mounts)
    try {
      const { blocks, bfree, bsize, files, ffree } = statfsSync(`${root}${point}`)
      sum += (blocks - bfree) * bsize + (files - ffree) * BYTES_PER_NAME
    } catch {
      // Gone with the sandbox.
    }
  return sum
}

/** Of one look: about 50 ms. */
const MOST_DESCRIPTORS = 20_000

/**
 * Memory files by descriptor. A sandbox can hold more descriptors than one look takes up: the next look goes on where the last one
 * stopped, so that no number of them hides a file.
 */
export class MemoryFiles {
  readonly #most: number
  /** Bytes by file, of the last round that was complete, and of the one that goes on. */
  #before = new Map<string, number>()
  #now = new Map<string, number>()
  /** What this round has still to look at. */
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
