/**
 * What a virtual machine is made of: a kernel, an initramfs and virtiofsd. They are taken once from the distribution's
 * packages into pen's cache. Every start compares their checksums with those of that day.
 */
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { PenError } from '../../base/error.ts'
import { findTool, missingTool } from '../../base/find-tool.ts'
import { basename } from '../../base/posix-path.ts'
import { printable } from '../../base/printable.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { capture } from '../../base/spawn.ts'
import { daemonDisk } from './daemon-disk.ts'
import { DebianPackages } from './debian-packages.ts'
import { buildInitramfs, INITRAMFS_VERSION, MODULES } from './initramfs.ts'
import { BUSYBOX, KERNEL, takeKernel, takeServer } from './package-tree.ts'

export interface GuestFiles {
  /** The host's directory with all of them. */
  readonly dir: string
  /** Names in that directory. */
  readonly kernel: string
  readonly initramfs: string
  /** The disk with the exec daemon. */
  readonly daemon: string
  /** How to start virtiofsd. Words that begin with a slash are programs of the host; others are in `dir`. */
  readonly server: readonly string[]
}

interface Manifest {
  readonly modules: readonly string[]
  readonly digests: Readonly<Record<string, string>>
  readonly server: readonly string[]
}

const MANIFEST = 'manifest.json'
const META_PACKAGE: Readonly<Record<string, string>> = {
  x64: 'linux-image-cloud-amd64',
  arm64: 'linux-image-cloud-arm64',
}
const MAX_FILE = 256 * 2 ** 20

/** `tell` says why the first start takes long. */
export async function guestFiles(cacheDir: string, tell: (line: string) => void): Promise<GuestFiles> {
  const dir = `${cacheDir}/vm`
  const manifest = readManifest(dir) ?? (await prepare(cacheDir, dir, tell))
  const parts = Object.keys(manifest.digests).filter(name => name.endsWith('.ko') || name === BUSYBOX)
  const initramfs = `initramfs-${INITRAMFS_VERSION}`
  if (!existsSync(`${dir}/${initramfs}`)) {
    const read = (name: string): Uint8Array => readFileSync(`${dir}/${name}`)
    const modules = parts.filter(name => name !== BUSYBOX).sort((a, b) => (a < b ? -1 : 1))
    const image = buildInitramfs({
      busybox: read(BUSYBOX),
      modules: modules.map(name => ({ name, bytes: read(name) })),
    })
    // The user of the box reads it, also when `~/.pen` is open to others.
    writeFileAtomically(`${dir}/${initramfs}`, image, { mode: 0o644 })
  }
  return { dir, kernel: KERNEL, initramfs, daemon: await daemonDisk(dir, cacheDir), server: manifest.server }
}

/** Removes what pen made of the files. The next start makes it again. */
export function forgetMade({ dir, initramfs, daemon }: GuestFiles): void {
  for (const name of [initramfs, daemon]) rmSync(`${dir}/${name}`, { force: true })
}

/** Undefined when something is missing or has changed: everything is then prepared again. */
function readManifest(dir: string): Manifest | undefined {
  try {
    const text = readFileSync(`${dir}/${MANIFEST}`, 'utf8')
    const manifest = JSON.parse(text) as Manifest
    const isWhole = Object.entries(manifest.digests).every(
      ([name, digest]) => digestOf(`${dir}/${name}`) === digest,
    )
    return isWhole && manifest.modules.join() === MODULES.join() ? manifest : undefined
  } catch {
    return undefined
  }
}

function digestOf(path: string): string | undefined {
  const bytes = readRegularFile(path, { maxBytes: MAX_FILE, owner: 'self-or-root' })
  return bytes && new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
}

/** Whether a start needs nothing more. */
export const areGuestFilesPrepared = (cacheDir: string): boolean =>
  readManifest(`${cacheDir}/vm`) !== undefined

/** Prepares everything again. `from` has the files of packages, or what pen has prepared on another machine. */
export async function prepareGuestFiles(
  cacheDir: string,
  tell: (line: string) => void,
  from?: string,
): Promise<GuestFiles> {
  await prepare(cacheDir, `${cacheDir}/vm`, tell, from)
  return await guestFiles(cacheDir, tell)
}

async function prepare(
  cacheDir: string,
  dir: string,
  tell: (line: string) => void,
  from?: string,
): Promise<Manifest> {
  const source = from ?? 'the packages of this distribution'
  tell(`preparing the kernel of the virtual machine from ${printable(source, 200)}, once …`)
  mkdirSync(cacheDir, { recursive: true, mode: 0o700 })
  const work = mkdtempSync(`${cacheDir}/.vm-`)
  const made = `${work}/vm`
  try {
    mkdirSync(made, { mode: 0o755 })
    const copied = from === undefined ? undefined : copyPrepared(from, made)
    if (copied === undefined) await takeKernel(from ?? (await kernelPackages(work)), made)
    tell('preparing virtiofsd …')
    const server =
      copied?.server ??
      (await hostServer()) ??
      (from === undefined ? await packagedServer(work, made) : await takeServer(from, made))
    if (server === undefined) throw missingServer()
    const digests = Object.fromEntries(
      readdirSync(made).map(name => [name, digestOf(`${made}/${name}`) ?? '']),
    )
    const manifest: Manifest = { modules: MODULES, digests, server }
    writeFileSync(`${made}/${MANIFEST}`, JSON.stringify(manifest))
    // Another pen may have prepared the same meanwhile, and its machine may be starting with it.
    const theirs = from === undefined ? readManifest(dir) : undefined
    return theirs ?? putInPlace(made, dir, `${work}/old`, manifest)
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

function putInPlace(made: string, dir: string, old: string, manifest: Manifest): Manifest {
  if (existsSync(dir)) renameSync(dir, old)
  renameSync(made, dir)
  return manifest
}

/** What pen has prepared elsewhere. Undefined when the directory is something else. */
function copyPrepared(from: string, made: string): Manifest | undefined {
  if (!existsSync(`${from}/${MANIFEST}`)) return undefined
  const manifest = readManifest(from)
  if (manifest === undefined)
    throw new PenError('BACKEND', {
      what: 'the prepared files are damaged, or of another version of pen',
      at: from,
      hint: 'prepare them again there, with the same version of pen: pen build --isolation vm',
    })
  for (const name of Object.keys(manifest.digests)) copyFileSync(`${from}/${name}`, `${made}/${name}`)
  return manifest
}

/** Packages of the kernel and BusyBox, unpacked. */
async function kernelPackages(work: string): Promise<string> {
  const tree = `${work}/kernel`
  const packages = new DebianPackages(`${work}/apt-kernel`)
  const meta = META_PACKAGE[process.arch]
  if (meta === undefined) throw notMade(`a kernel for ${process.arch}`)
  const [image] = /linux-image-[0-9][\w.+-]*/.exec(await packages.field(meta, 'Depends')) ?? []
  if (image === undefined) throw notMade(`the kernel that ${meta} names`)
  await packages.extract([image, 'busybox-static'], tree)
  return tree
}

/** Only the Rust virtiofsd works without privileges. QEMU's own, older one has the same name. */
const SERVER_PLACES = ['/usr/libexec/virtiofsd', '/usr/lib/virtiofsd', '/usr/lib/qemu/virtiofsd']

/** The words that start the host's own virtiofsd. */
async function hostServer(): Promise<readonly string[] | undefined> {
  for (const place of SERVER_PLACES)
    if (
      findTool(basename(place), [{ path: place.slice(0, -'/virtiofsd'.length), owner: 'root' }]) === place
    ) {
      const { code, stdout } = await capture([place, '--version'], { env: {}, cwd: '/', timeoutMs: 5000 })
      if (code === 0 && /^virtiofsd( backend)? [1-9]/.test(stdout)) return [place]
    }
  return undefined
}

/** Debian's next release, when this one has only QEMU's. */
async function packagedServer(work: string, made: string): Promise<readonly string[] | undefined> {
  const tree = `${work}/server`
  const names = ['virtiofsd', 'libc6', 'libcap-ng0', 'libgcc-s1', 'libseccomp2']
  const isThere = await new DebianPackages(`${work}/apt-server`).extractNewer(names, tree)
  return isThere ? await takeServer(tree, made) : undefined
}

const missingServer = (): PenError =>
  missingTool(
    'virtiofsd',
    'install it: apt-get install virtiofsd, dnf install virtiofsd or pacman -S virtiofsd; or put its package into the directory of --vm-files',
  )

const notMade = (what: string): PenError =>
  new PenError('BACKEND', {
    what: `pen could not find ${what} for the virtual machine`,
    hint: 'name a directory with the files of packages: pen build --isolation vm --vm-files DIR',
  })
