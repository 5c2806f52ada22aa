/** Runs a door and a hostile program behind it, as root and as an ordinary user. */
import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bwrapWorks, hostTree } from '../bubblewrap.ts'
import { WITHOUT_PACKET_FILTER } from '../no-packet-filter.ts'
import { onlyWhen, skipUnless } from '../skip.ts'
import type { DriverOptions } from './door-driver.ts'

export type Step = readonly [string, ...(string | number)[]]
export type Answer = { readonly step: Step; readonly result: unknown; readonly ms: number }
export type Event = { readonly event: string } & Readonly<Record<string, unknown>>

const USER = 'pentest'
const isRoot = process.getuid?.() === 0
const works = (...argv: [string, ...string[]]) => spawnSync(argv[0], argv.slice(1)).status === 0
const ready = bwrapWorks() && works('/usr/bin/python3', '--version') && works('nft', '--version')
export const onLinux = skipUnless(ready, 'bubblewrap, nftables or python3 is missing')
export const asRoot = onlyWhen(isRoot && ready)

const place = ready ? mkdtempSync(join(tmpdir(), 'pen-door-')) : ''
const driver = join(place, 'driver')
export const client = join(place, 'client.py')

/** Compiles the driver into a directory where every user can run it. */
export function prepareDriver(): void {
  if (!ready) return
  if (isRoot && !works('id', USER)) works('useradd', '-m', USER)
  chmodSync(place, 0o755)
  copyFileSync(join(import.meta.dir, 'door-client.py'), client)
  const entry = join(import.meta.dir, 'door-driver.ts')
  const made = spawnSync(
    process.execPath,
    ['build', '--compile', '--bytecode', '--format=esm', entry, `--outfile=${driver}`],
    {
      encoding: 'utf8',
    },
  )
  if (made.status !== 0) throw new Error(made.stderr)
}

export const removeDriver = (): void => rmSync(place, { recursive: true, force: true })

const idOf = (flag: '-u' | '-g', name: string) =>
  Number(spawnSync('id', [flag, name], { encoding: 'utf8' }).stdout)

const BWRAP = [
  ...['bwrap', '--unshare-user', '--unshare-pid', '--unshare-ipc', '--unshare-uts', '--unshare-cgroup'],
  ...['--disable-userns', '--cap-drop', 'ALL', '--uid', '1000', '--gid', '1000', '--die-with-parent'],
  ...hostTree(),
  ...['--dev', '/dev', '--proc', '/proc', '--ro-bind', place, place, '--'],
]

export interface Kind {
  readonly name: string
  readonly become: readonly string[]
  readonly runAs?: { readonly uid: number; readonly gid: number }
}

/** Root gives the sandbox an ordinary uid, as pen does. An ordinary user keeps its own. */
export const kinds = (): readonly Kind[] => {
  if (!isRoot) return [{ name: 'an ordinary user', become: [] }]
  const runAs = { uid: idOf('-u', USER), gid: idOf('-g', USER) }
  const become = ['setpriv', `--reuid=${USER}`, `--regid=${USER}`, '--init-groups']
  return [
    { name: 'root', become: [], runAs },
    { name: 'an ordinary user', become },
  ]
}

export function command(
  kind: Kind,
  options: Partial<DriverOptions>,
  argv: readonly string[],
): [string, ...string[]] {
  const { runAs } = kind
  const all = { ports: [443], ...options, ...(runAs === undefined ? {} : { runAs }) }
  const [program = '', ...rest] = [...kind.become, driver, JSON.stringify(all), ...argv]
  return [program, ...rest]
}

export const SYSTEM = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }

/** Runs the steps inside a sandbox. Returns the result of each, and what the gateway saw. */
export function inside(
  kind: Kind,
  steps: readonly Step[],
  { packetFilter = true, ...options }: Partial<DriverOptions> & { readonly packetFilter?: boolean } = {},
) {
  const argv = [...BWRAP, '/usr/bin/python3', client, JSON.stringify(steps)]
  const wrap = packetFilter ? [] : WITHOUT_PACKET_FILTER
  const [program = '', ...rest] = [...wrap, ...command(kind, options, argv)]
  const { status, stdout, stderr } = spawnSync(program, rest, {
    encoding: 'utf8',
    timeout: 50_000,
    env: SYSTEM,
  })
  if (status !== 0) throw new Error(`the driver ended with ${status}: ${stderr}`)
  const lines = stdout
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Answer | Event)
  const answers = lines.filter((line): line is Answer => 'step' in line)
  const events = lines.filter((line): line is Event => 'event' in line)
  return {
    results: answers.map(({ result }) => result),
    slowest: Math.max(...answers.map(({ ms }) => ms)),
    events,
    event: (name: string) => events.find(({ event }) => event === name),
  }
}

export const dialled = (events: readonly Event[]) =>
  events.filter(({ event }) => event === 'dialled').map(({ address, port }) => `${address} ${port}`)

export const forEachKind = (title: string, body: (kind: Kind) => void | Promise<void>, timeout?: number) =>
  onLinux(
    title,
    async () => {
      for (const kind of kinds()) await body(kind)
    },
    timeout,
  )

/** The network namespace of every process that we may inspect. */
export function namespaces(): Map<number, string> {
  const found = new Map<number, string>()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      found.set(Number(name), readlinkSync(`/proc/${name}/ns/net`))
    } catch {}
  }
  return found
}

/** The driver, or a process that it started. */
export function isOurs(pid: number): boolean {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(place)
  } catch {
    return false
  }
}

export function descendants(root: number): Set<number> {
  const parents = new Map<number, number>()
  for (const pid of namespaces().keys()) {
    try {
      const after = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').at(-1) ?? ''
      parents.set(pid, Number(after.split(' ')[1]))
    } catch {}
  }
  const mine = new Set([root])
  for (let size = 0; size !== mine.size; ) {
    size = mine.size
    for (const [pid, parent] of parents) if (mine.has(parent)) mine.add(pid)
  }
  return mine
}
