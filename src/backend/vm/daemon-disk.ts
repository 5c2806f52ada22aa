/**
 * A read-only disk with the exec daemon, its loader and its libraries. The daemon runs before the guest has the sandbox's
 * files, so that a snapshot includes it: its start takes longer than the rest of a restore. The disk is a cache of the
 * running pen.
 */
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { basename } from '../../base/posix-path.ts'
import { programOf } from '../container/guest-program.ts'

const PREFIX = 'daemon-'

/** The name of the disk in `dir`. */
export async function daemonDisk(dir: string, cacheDir: string): Promise<string> {
  const { binds, loader } = await programOf(process.execPath, cacheDir)
  const stamps = binds.map(({ from }) => {
    const { size, mtimeMs } = statSync(from)
    return [from, size, mtimeMs]
  })
  const name = `${PREFIX}${Bun.hash(JSON.stringify([VERSION, stamps])).toString(16)}`
  if (existsSync(`${dir}/${name}`)) return name
  const files = binds.map(({ from, at }) => ({
    name: from === loader ? DAEMON_LOADER : from === process.execPath ? DAEMON : basename(at),
    bytes: readFileSync(from),
  }))
  writeFileAtomically(`${dir}/${name}`, buildDisk(files), { mode: 0o644 })
  removeOld(dir)
  return name
}

/** Another pen may be starting with its own, so two stay. */
function removeOld(dir: string): void {
  const disks = readdirSync(dir).filter(name => /^\.?daemon-/.test(name))
  const byAge = disks
    .map(name => ({ name, at: statSync(`${dir}/${name}`).mtimeMs }))
    .sort((a, b) => b.at - a.at)
  for (const { name } of byAge.slice(2)) rmSync(`${dir}/${name}`, { force: true })
}

/** Names on the disk. */
export const DAEMON = 'pen'
export const DAEMON_LOADER = 'loader'

export interface DiskFile {
  readonly name: string
  readonly bytes: Uint8Array
}

const BLOCK = 4096
/** Changes when the disk of the same files would be another. */
const VERSION = 1
const MAGIC = 0xe0f5e1e2
const SUPERBLOCK = 1024
const INODE = 32
const ENTRY = 12
const KIND = { file: 1, directory: 2 } as const
/** The blocks of the superblock, the inodes and the directory. */
const PLACE = { inodes: 1, directory: 2, files: 3 } as const

/** An image of EROFS without compression: one directory of programs. The kernel's `erofs_fs.h` has the format. */
export function buildDisk(files: readonly DiskFile[]): Uint8Array {
  const sorted = [...files].sort((a, b) => (a.name < b.name ? -1 : 1))
  const directory = directoryOf(sorted.map(({ name }) => name))
  const metadata = Buffer.alloc(PLACE.files * BLOCK)
  const blocks = (size: number): number => Math.ceil(size / BLOCK)
  inode(metadata, ROOT, { mode: 0o040755, links: 2, size: directory.length, block: PLACE.directory })
  directory.copy(metadata, PLACE.directory * BLOCK)
  let block: number = PLACE.files
  const pieces: Uint8Array[] = [metadata]
  for (const [i, { bytes }] of sorted.entries()) {
    inode(metadata, ROOT + 1 + i, { mode: 0o100555, links: 1, size: bytes.length, block })
    pieces.push(bytes, new Uint8Array(blocks(bytes.length) * BLOCK - bytes.length))
    block += blocks(bytes.length)
  }
  metadata.writeUInt32LE(MAGIC, SUPERBLOCK)
  metadata.writeUInt8(Math.log2(BLOCK), SUPERBLOCK + 12)
  metadata.writeUInt16LE(ROOT, SUPERBLOCK + 14)
  metadata.writeUInt32LE(sorted.length + 1, SUPERBLOCK + 16)
  metadata.writeUInt32LE(block, SUPERBLOCK + 36)
  metadata.writeUInt32LE(PLACE.inodes, SUPERBLOCK + 40)
  return Buffer.concat(pieces)
}

/** The number of the first inode. Inodes follow each other. */
const ROOT = 1

interface Inode {
  readonly mode: number
  readonly links: number
  readonly size: number
  readonly block: number
}

/** A compact inode, whose data is in consecutive blocks. Root owns everything. */
function inode(metadata: Buffer, number: number, { mode, links, size, block }: Inode): void {
  const at = PLACE.inodes * BLOCK + number * INODE
  metadata.writeUInt16LE(mode, at + 4)
  metadata.writeUInt16LE(links, at + 6)
  metadata.writeUInt32LE(size, at + 8)
  metadata.writeUInt32LE(block, at + 16)
  metadata.writeUInt32LE(number, at + 20)
}

/** Entries in the order of their names, then the names. */
function directoryOf(names: readonly string[]): Buffer {
  const entries = [
    { name: '.', inode: ROOT, kind: KIND.directory },
    { name: '..', inode: ROOT, kind: KIND.directory },
    ...names.map((name, i) => ({ name, inode: ROOT + 1 + i, kind: KIND.file })),
  ]
  const table = Buffer.alloc(entries.length * ENTRY)
  let nameAt = table.length
  for (const [i, entry] of entries.entries()) {
    table.writeBigUInt64LE(BigInt(entry.inode), i * ENTRY)
    table.writeUInt16LE(nameAt, i * ENTRY + 8)
    table.writeUInt8(entry.kind, i * ENTRY + 10)
    nameAt += entry.name.length
  }
  return Buffer.concat([table, Buffer.from(entries.map(({ name }) => name).join(''))])
}
