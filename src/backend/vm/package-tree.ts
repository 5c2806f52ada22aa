/**
 * Takes the parts of a virtual machine from a directory with the files of a distribution's packages, as they are
 * unpacked: pen's own, or one that the user names. Nothing in it is executed but virtiofsd's loader, which lists its
 * libraries.
 */
import { copyFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import { readProgramHead } from '../../base/program-head.ts'
import { capture } from '../../base/spawn.ts'
import { parseList } from '../container/guest-program.ts'
import { MODULES, neededModules } from './initramfs.ts'

export const KERNEL = 'vmlinuz'
export const BUSYBOX = 'busybox'
const LOADER = 'ld.so'

/** Debian, Fedora, Arch and Alpine put them there. */
const KERNELS = ['boot/vmlinuz-*', 'lib/modules/*/vmlinuz', 'usr/lib/modules/*/vmlinuz']
const MODULE_TREES = ['lib/modules/*', 'usr/lib/modules/*']
const BUSYBOXES = ['bin', 'usr/bin', 'sbin', 'usr/sbin'].map(place => `${place}/busybox*`)
const SERVERS = ['libexec', 'lib', 'lib/qemu', 'bin'].map(place => `usr/${place}/virtiofsd`)
const LOADERS = ['usr/lib/*-linux-gnu', 'lib/*-linux-gnu', 'usr/lib64', 'lib64', 'usr/lib', 'lib'].map(
  place => `${place}/ld-*.so.*`,
)

/** Kernel, BusyBox and modules, in the order in which they are loaded. */
export async function takeKernel(tree: string, made: string): Promise<void> {
  const [kernel] = found(tree, KERNELS)
  if (kernel === undefined) throw missingPart('a kernel', KERNELS.join(', '), tree)
  const [busybox] = found(tree, BUSYBOXES).filter(isStatic)
  if (busybox === undefined) throw missingPart('a static BusyBox', BUSYBOXES.join(', '), tree)
  const name = basename(kernel)
  const release = name === 'vmlinuz' ? basename(dirname(kernel)) : name.slice('vmlinuz-'.length)
  const all = found(tree, MODULE_TREES)
  const modules = all.find(path => basename(path) === release) ?? all[0]
  if (modules === undefined) throw missingPart('modules', 'lib/modules', tree)
  copyFileSync(kernel, `${made}/${KERNEL}`)
  copyFileSync(busybox, `${made}/${BUSYBOX}`)
  for (const [i, module] of (await inLoadOrder(modules, made)).entries())
    writeFileSync(`${made}/${String(i).padStart(2, '0')}-${module.name}.ko`, module.bytes)
}

const found = (tree: string, patterns: readonly string[]): string[] =>
  patterns.flatMap(pattern =>
    [...new Bun.Glob(pattern).scanSync({ cwd: tree, onlyFiles: false })]
      .sort()
      .map(path => `${tree}/${path}`),
  )

/** The initramfs has no libraries. */
function isStatic(path: string): boolean {
  const head = readProgramHead(path)
  return head.kind === 'native' && head.loader === undefined
}

interface Module {
  readonly name: string
  readonly bytes: Uint8Array
}

/** A module after those that it needs. The kernel spells `-` in names as `_`. */
async function inLoadOrder(directory: string, made: string): Promise<readonly Module[]> {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' })
  const byName = new Map(
    files.flatMap(path => {
      const [, name] = /([^/]+)\.ko(\.\w+)?$/.exec(path) ?? []
      return name === undefined ? [] : [[name.replaceAll('-', '_'), { name, path: `${directory}/${path}` }]]
    }),
  )
  const order = new Map<string, Module>()
  const take = async (wanted: string): Promise<void> => {
    const file = byName.get(wanted.replaceAll('-', '_'))
    // Built into the kernel, when there is no file.
    if (file === undefined || order.has(file.path)) return
    const bytes = await unpacked(file.path, made)
    for (const needed of neededModules(bytes)) await take(needed)
    order.set(file.path, { name: file.name, bytes })
  }
  for (const name of MODULES) await take(name)
  return [...order.values()]
}

async function unpacked(path: string, made: string): Promise<Uint8Array> {
  const bytes = readFileSync(path)
  if (path.endsWith('.ko')) return bytes
  if (path.endsWith('.gz')) return Bun.gunzipSync(bytes)
  if (path.endsWith('.zst')) return Bun.zstdDecompressSync(bytes)
  const xz = path.endsWith('.xz') ? findTool('xz') : undefined
  if (xz === undefined) throw missingPart('a module that pen can unpack', basename(path), dirname(path))
  const copy = `${made}/.module`
  copyFileSync(path, `${copy}.xz`)
  await capture([xz, '--decompress', '--force', `${copy}.xz`], { env: {}, cwd: '/', timeoutMs: 10_000 })
  const module = readFileSync(copy)
  rmSync(copy)
  return module
}

/** The words that start virtiofsd, or undefined when the tree has none. Its own loader and libraries come along. */
export async function takeServer(tree: string, made: string): Promise<readonly string[] | undefined> {
  const [program] = found(tree, SERVERS)
  if (program === undefined) return undefined
  copyFileSync(program, `${made}/virtiofsd`)
  const [loader] = found(tree, LOADERS)
  // The host's own loader and libraries do.
  if (loader === undefined) return ['virtiofsd']
  const place = dirname(loader)
  const argv = [loader, '--library-path', place, '--list', program]
  const { stdout } = await capture(argv, { env: {}, cwd: '/', timeoutMs: 5000 })
  copyFileSync(loader, `${made}/${LOADER}`)
  for (const { name, path } of parseList(stdout)) if (existsSync(path)) copyFileSync(path, `${made}/${name}`)
  return [LOADER, '--library-path', '.', 'virtiofsd']
}

const missingPart = (what: string, where: string, tree: string): PenError =>
  new PenError('BACKEND', {
    what: `pen could not find ${what} for the virtual machine (${where})`,
    at: tree,
    hint: 'unpack the packages of a kernel, of a static BusyBox and of virtiofsd there',
  })
