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

const MOST_DESCRIPTORS = 20_000

export function memoryFileBytes(members: readonly Member[]): number {
  const seen = new Set<string>()
  let sum = 0
  let left = MOST_DESCRIPTORS
  for (const { pid } of members)
    for (const path of descriptorsOf(pid)) {
      if (left-- <= 0) return sum
      try {
        if (!readlinkSync(path).startsWith('/memfd:')) continue
        const { dev, ino, blocks } = statSync(path)
        if (seen.has(`${dev}:${ino}`)) continue
        seen.add(`${dev}:${ino}`)
        sum += blocks * 512
      } catch {
        // Closed since it was listed.
      }
    }
  return sum
}
