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
import { PenError } from '../../base/error.ts'
import { findTool, missingTool } from '../../base/find-tool.ts'
import { basename } from '../../base/posix-path.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { capture } from '../../base/spawn.ts'
import { parseList } from '../container/guest-program.ts'
import { DebianPackages } from './debian-packages.ts'
import { buildInitramfs, INITRAMFS_VERSION, MODULES, neededModules } from './initramfs.ts'

export interface GuestFiles {
  /** The host's directory with all of them. */
  readonly dir: string
  /** Names in that directory. */
  readonly kernel: string
  readonly initramfs: string
  /** How to start virtiofsd. Words that begin with a slash are programs of the host; others are in `dir`. */
  readonly server: readonly string[]
}

interface Manifest {
  readonly digests: Readonly<Record<string, string>>
  readonly server: readonly string[]
}

const KERNEL = 'vmlinuz'
export const BUSYBOX = 'busybox'
const LOADER = 'ld.so'
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
    writeFileSync(`${dir}/${initramfs}.new`, image, { mode: 0o600 })
    renameSync(`${dir}/${initramfs}.new`, `${dir}/${initramfs}`)
  }
  return { dir, kernel: KERNEL, initramfs, server: manifest.server }
}

/** Undefined when something is missing or has changed: everything is then prepared again. */
function readManifest(dir: string): Manifest | undefined {
  try {
    const text = readFileSync(`${dir}/${MANIFEST}`, 'utf8')
    const manifest = JSON.parse(text) as Manifest
    const isWhole = Object.entries(manifest.digests).every(
      ([name, digest]) => digestOf(`${dir}/${name}`) === digest,
    )
    return isWhole ? manifest : undefined
  } catch {
    return undefined
  }
}

function digestOf(path: string): string | undefined {
  const bytes = readRegularFile(path, { maxBytes: MAX_FILE, owner: 'self-or-root' })
  return bytes && new Bun.CryptoHasher('sha256').update(bytes).digest('hex')
}

async function prepare(cacheDir: string, dir: string, tell: (line: string) => void): Promise<Manifest> {
  tell('preparing the kernel of the virtual machine from the packages of this distribution, once …')
  mkdirSync(cacheDir, { recursive: true, mode: 0o700 })
  const work = mkdtempSync(`${cacheDir}/.vm-`)
  const made = `${work}/vm`
  try {
    mkdirSync(made, { mode: 0o755 })
    await takeKernel(work, made)
    const server = await takeServer(work, made)
    const digests = Object.fromEntries(
      readdirSync(made).map(name => [name, digestOf(`${made}/${name}`) ?? '']),
    )
    const manifest: Manifest = { digests, server }
    writeFileSync(`${made}/${MANIFEST}`, JSON.stringify(manifest))
    rmSync(dir, { recursive: true, force: true })
    renameSync(made, dir)
    return manifest
  } finally {
    rmSync(work, { recursive: true, force: true })
  }
}

async function takeKernel(work: string, made: string): Promise<void> {
  const tree = `${work}/kernel`
  const packages = new DebianPackages(`${work}/apt-kernel`)
  const meta = META_PACKAGE[process.arch]
  if (meta === undefined) throw notMade(`a kernel for ${process.arch}`)
  const [image] = /linux-image-[0-9][\w.+-]*/.exec(await packages.field(meta, 'Depends')) ?? []
  if (image === undefined) throw notMade(`the kernel that ${meta} names`)
  await packages.extract([image, 'busybox-static'], tree)
  const kernel = readdirSync(`${tree}/boot`).find(name => name.startsWith('vmlinuz-'))
  if (kernel === undefined) throw notMade('a kernel in its package')
  copyFileSync(`${tree}/boot/${kernel}`, `${made}/${KERNEL}`)
  copyFileSync(`${tree}/bin/busybox`, `${made}/${BUSYBOX}`)
  const release = kernel.slice('vmlinuz-'.length)
  for (const [i, file] of inLoadOrder(`${tree}/lib/modules/${release}`).entries())
    copyFileSync(file, `${made}/${String(i).padStart(2, '0')}-${basename(file)}`)
}

/** A module after those that it needs. The kernel spells `-` in names as `_`. */
function inLoadOrder(modules: string): string[] {
  const files = readdirSync(modules, { recursive: true, encoding: 'utf8' }).filter(path =>
    path.endsWith('.ko'),
  )
  const nameOf = (path: string): string => basename(path).slice(0, -'.ko'.length).replaceAll('-', '_')
  const byName = new Map(files.map(path => [nameOf(path), `${modules}/${path}`]))
  const order = new Set<string>()
  const take = (name: string): void => {
    const file = byName.get(name.replaceAll('-', '_'))
    // Built into the kernel, when there is no file.
    if (file === undefined || order.has(file)) return
    for (const needed of neededModules(readFileSync(file))) take(needed)
    order.add(file)
  }
  for (const name of MODULES) take(name)
  return [...order]
}

/** Only the Rust virtiofsd works without privileges. QEMU's own, older one has the same name. */
const SERVER_PLACES = ['/usr/libexec/virtiofsd', '/usr/lib/virtiofsd', '/usr/lib/qemu/virtiofsd']

async function takeServer(work: string, made: string): Promise<readonly string[]> {
  for (const place of SERVER_PLACES)
    if (
      findTool(basename(place), [{ path: place.slice(0, -'/virtiofsd'.length), owner: 'root' }]) === place
    ) {
      const { code, stdout } = await capture([place, '--version'], { env: {}, cwd: '/', timeoutMs: 5000 })
      if (code === 0 && /^virtiofsd( backend)? [1-9]/.test(stdout)) return [place]
    }
  const tree = `${work}/server`
  const names = ['virtiofsd', 'libc6', 'libcap-ng0', 'libgcc-s1', 'libseccomp2']
  if (!(await new DebianPackages(`${work}/apt-server`).extractNewer(names, tree)))
    throw missingTool(
      'virtiofsd',
      'install it: apt-get install virtiofsd, dnf install virtiofsd or pacman -S virtiofsd',
    )
  const program = `${tree}/usr/libexec/virtiofsd`
  const [libraries = ''] = readdirSync(`${tree}/usr/lib`).filter(name => name.endsWith('-linux-gnu'))
  const place = `${tree}/usr/lib/${libraries}`
  const [loader = ''] = readdirSync(place).filter(name => name.startsWith('ld-linux-'))
  const argv = [`${place}/${loader}`, '--library-path', place, '--list', program]
  const { stdout } = await capture(argv, { env: {}, cwd: '/', timeoutMs: 5000 })
  copyFileSync(program, `${made}/virtiofsd`)
  copyFileSync(`${place}/${loader}`, `${made}/${LOADER}`)
  for (const { name, path } of parseList(stdout)) copyFileSync(path, `${made}/${name}`)
  return [LOADER, '--library-path', '.', 'virtiofsd']
}

const notMade = (what: string): PenError =>
  new PenError('BACKEND', {
    what: `pen could not find ${what} for the virtual machine`,
    hint: 'isolation "vm" needs Debian packages for x86-64 or arm64; use another isolation here',
  })
