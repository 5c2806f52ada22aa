/** How much memory all of pen uses while a command runs. Shared pages are divided among their users. */
import { readdirSync, readFileSync } from 'node:fs'

interface Process {
  readonly pid: number
  readonly parent: number
  readonly command: string
}

export interface Memory {
  readonly pssMiB: number
  readonly processes: readonly string[]
}

/** The command is a `sleep` with this number of seconds, which identifies it. It does not count. */
const SECONDS = '4.2171'

export async function memoryOf(
  pen: string,
  options: { cwd: string; wrap: readonly string[] },
): Promise<Memory> {
  const child = Bun.spawn([...options.wrap, pen, 'run', '--offline', '--', 'sleep', SECONDS], {
    cwd: options.cwd,
    stdio: ['ignore', 'ignore', 'ignore'],
  })
  try {
    const deadline = performance.now() + 3000
    while (performance.now() < deadline && !family(child.pid).some(isCommand)) await Bun.sleep(20)
    // After the first check of every watcher.
    await Bun.sleep(1000)
    const own = family(child.pid).filter(process => !isCommand(process))
    const bytes = own.reduce((sum, { pid }) => sum + pssOf(pid), 0)
    return {
      pssMiB: bytes / 2 ** 20,
      processes: own.map(({ command }) => command.split(' ')[0]?.split('/').at(-1) ?? ''),
    }
  } finally {
    child.kill('SIGTERM')
    await child.exited
  }
}

/** A process and all its descendants, by pid. */
export const withDescendants = (root: number): number[] => family(root).map(({ pid }) => pid)

const isCommand = ({ command }: Process): boolean => command === `sleep ${SECONDS}`

function family(root: number): Process[] {
  const all = readdirSync('/proc')
    .filter(name => /^\d+$/.test(name))
    .flatMap(processAt)
  const out = all.filter(({ pid }) => pid === root)
  for (const { pid } of out) out.push(...all.filter(({ parent }) => parent === pid))
  return out
}

function processAt(name: string): Process[] {
  try {
    const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
    const command = readFileSync(`/proc/${name}/cmdline`, 'latin1').split('\0').join(' ').trim()
    return [
      { pid: Number(name), parent: Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[1]), command },
    ]
  } catch {
    return []
  }
}

export function pssOf(pid: number): number {
  try {
    const kilobytes = /^Pss:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1'))?.[1]
    return Number(kilobytes ?? 0) * 1024
  } catch {
    return 0
  }
}
