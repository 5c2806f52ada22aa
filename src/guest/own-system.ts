/**
 * The system of a guest whose commands are root. They may change all of it, and every change stays in the guest's
 * memory: an overlay covers the tree that virtiofsd serves. The places of the user's grants are the host's own.
 */
import { chmodSync, mkdirSync, rmSync, statSync } from 'node:fs'

/** Mounts something; throws when the kernel refuses. */
export type Mount = (kind: string, from: string, at: string, flags: number, options?: string) => void

/** In the guest's first file system, which the sandbox's root covers. */
const SERVED = '/served'
const CHANGES = '/changes'
const MS = { nosuid: 2, nodev: 4, noexec: 8, bind: 4096 } as const
/** dpkg's locks belong to the host's root. No user of virtiofsd may open them, and dpkg makes new ones. */
const LOCKS = ['lock', 'lock-frontend', 'triggers/Lock'].map(name => `/var/lib/dpkg/${name}`)
/** Engines for containers make overlays there, and no overlay can be made of another. */
const ENGINES = ['/var/lib/containers', '/var/lib/docker']

/** What apt expects, and does not make. */
const DIRECTORIES = [
  '/sys',
  '/etc/apt/apt.conf.d',
  '/etc/apt/preferences.d',
  '/var/cache/apt/archives/partial',
  '/var/log/apt',
]
/** Directories on the way to mounts, which only the sandbox's user could enter. A system has more users. */
const OPEN = ['/etc', '/home', '/run', '/var', '/var/lib']

/** `serve` mounts the tree. `places` are of the host: what is written there is not covered. */
export function mountOwnSystem(
  root: string,
  places: readonly string[],
  mount: Mount,
  serve: (at: string) => void,
): void {
  for (const directory of [SERVED, CHANGES]) mkdirSync(directory)
  serve(SERVED)
  mount('tmpfs', 'tmpfs', CHANGES, MS.nodev, 'mode=700')
  for (const name of ['upper', 'work']) mkdirSync(`${CHANGES}/${name}`, { mode: 0o755 })
  mount(
    'overlay',
    'overlay',
    root,
    MS.nodev,
    `lowerdir=${SERVED},upperdir=${CHANGES}/upper,workdir=${CHANGES}/work`,
  )
  for (const place of places)
    if (statSync(`${SERVED}${place}`, { throwIfNoEntry: false }) !== undefined)
      mount('none', `${SERVED}${place}`, `${root}${place}`, MS.bind)
  for (const lock of LOCKS) rmSync(`${root}${lock}`, { force: true })
  for (const directory of [...ENGINES, ...DIRECTORIES]) mkdirSync(`${root}${directory}`, { recursive: true })
  for (const directory of OPEN) chmodSync(`${root}${directory}`, 0o755)
  for (const directory of ENGINES) mount('tmpfs', 'tmpfs', `${root}${directory}`, MS.nodev, 'mode=711')
  mount('sysfs', 'sysfs', `${root}/sys`, MS.nosuid | MS.nodev | MS.noexec)
  mount('cgroup2', 'cgroup2', `${root}/sys/fs/cgroup`, MS.nosuid | MS.nodev | MS.noexec)
}
