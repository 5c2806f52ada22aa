/** The programs that listen on a host port, as far as this user can see. */
import { readFileSync, readlinkSync } from 'node:fs'
import { readKernelFile } from '../base/kernel/kernel-file.ts'
import { allPids, descriptorsOf } from '../base/kernel/processes.ts'

const TCP_LISTEN = '0A'

/** The inodes of sockets on the port, from `/proc/net/{tcp,tcp6,udp,udp6}`. */
export function socketsAt(port: number, text: string, kind: 'tcp' | 'udp'): string[] {
  const wanted = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  return text
    .split('\n')
    .slice(1)
    .map(line => line.trim().split(/\s+/))
    .filter(fields => fields[1]?.endsWith(wanted) && (kind === 'udp' || fields[3] === TCP_LISTEN))
    .flatMap(fields => fields[9] ?? [])
}

/** Names of programs; `another user's program` for those that this user cannot inspect. */
export function ownersOf(port: number): string[] {
  const inodes = new Set(
    (['tcp', 'tcp6', 'udp', 'udp6'] as const).flatMap(table => {
      try {
        return socketsAt(port, readKernelFile(`/proc/net/${table}`), table.startsWith('tcp') ? 'tcp' : 'udp')
      } catch {
        return []
      }
    }),
  )
  if (inodes.size === 0) return []
  const names = new Set<string>()
  for (const pid of allPids())
    for (const inode of socketsOf(pid)) if (inodes.delete(inode)) names.add(nameOf(pid))
  if (inodes.size > 0) names.add("another user's program")
  return [...names]
}

function socketsOf(pid: number): string[] {
  return descriptorsOf(pid).flatMap(path => {
    try {
      return /^socket:\[(\d+)\]$/.exec(readlinkSync(path))?.[1] ?? []
    } catch {
      return []
    }
  })
}

function nameOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8').trim()
  } catch {
    return `process ${pid}`
  }
}
