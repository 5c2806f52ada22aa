/**
 * `pen __file`: file operations inside a sandbox, for the library and `pen mcp`. It has only the sandbox's own view and
 * rights, so the mounts decide. It needs no program of the image. The host treats its output as hostile: a program
 * inside could have started or replaced it.
 */
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmdirSync,
  rmSync,
  unlinkSync,
} from 'node:fs'
import { EXIT, type ExitCode, errnoOf, PenError } from '../base/error.ts'
import { dirname, join } from '../base/posix-path.ts'
import { writeAll } from '../base/write-all.ts'
import type { DirectoryPage } from '../protocol/broker-messages.ts'
import {
  type ContentOrder,
  FILE_MODE,
  type PlainFileOrder,
  readFileOrder,
  type SearchOrder,
} from '../protocol/file-order.ts'
import { BROKER_SOCKET } from '../protocol/guest-paths.ts'
import { BrokerClient, FileRefused } from './broker-client.ts'
import { searchGiven, searchTree } from './search-tree.ts'

type OnDisk = PlainFileOrder | SearchOrder

const CHUNK = 64 * 1024
const { O_RDONLY, O_WRONLY, O_CREAT, O_TRUNC, O_NONBLOCK } = constants

export async function runFileTool(words: readonly string[]): Promise<ExitCode> {
  if (process.env['AGENT_IN_SANDBOX'] !== '1' || words.length !== 1)
    throw new PenError('USAGE', { what: `${FILE_MODE} is not a verb: pen starts it by itself` })
  try {
    const order = readFileOrder(words[0] ?? '')
    if (order.op === 'match') {
      for await (const found of searchGiven(order, process.stdin)) say(1, found)
      return EXIT.ok
    }
    // The project is mounted. Grants outside of it are not.
    const isOutside = order.path !== process.cwd() && !order.path.startsWith(`${process.cwd()}/`)
    if (!isOutside || !(await isGranted(order))) act(order)
    return EXIT.ok
  } catch (error) {
    const errno = errnoOf(error)
    if (errno === undefined) throw error
    say(2, { errno })
    return EXIT.failed
  }
}

/** Files that the user granted while the sandbox runs are not mounted. The broker serves them. */
async function isGranted(order: OnDisk): Promise<boolean> {
  if (order.op === 'search' || order.op === 'delete') return false
  const client = await BrokerClient.connect(BROKER_SOCKET)
  if (client === undefined) return false
  try {
    const { path } = order
    const places = await client.grants()
    if (!places.some(place => path === place.path || path.startsWith(`${place.path}/`))) return false
    await actByBroker(client, order)
    return true
  } catch (error) {
    if (!(error instanceof FileRefused)) throw error
    throw Object.assign(new Error(error.message), { code: ERRNOS[error.refusal.reason] ?? 'EACCES' })
  } finally {
    client.close()
  }
}

const ERRNOS: Readonly<Record<string, string>> = { absent: 'ENOENT', directory: 'EISDIR' }

async function actByBroker(client: BrokerClient, order: ContentOrder): Promise<void> {
  switch (order.op) {
    case 'read':
      await client.read(order.path, () => bytes => writeAll(1, bytes), order)
      break
    case 'write':
      await client.write(order.path, process.stdin, order.executable)
      break
    case 'list': {
      let said = 0
      for (let from: number | null = 0; from !== null; ) {
        const page: DirectoryPage = await client.list(order.path, from)
        for (const { name, kind } of page.entries) if (said++ < order.most) say(1, { name, kind, size: null })
        from = page.next
      }
      if (said > order.most) say(1, { more: said - order.most })
      break
    }
  }
}

function act(order: OnDisk): void {
  switch (order.op) {
    case 'read':
      copy(order.path, order.from, order.length)
      break
    case 'write':
      take(order.path, order.executable)
      break
    case 'list':
      list(order.path, order.most)
      break
    case 'delete':
      remove(order.path, order.recursive)
      break
    case 'search':
      for (const found of searchTree(order)) say(1, found)
      break
  }
}

/** Regular files only: reading a pipe or a device may never end, and opening a pipe may block. */
function openFile(path: string, flags: number, mode?: number): number {
  const fd = openSync(path, flags | O_NONBLOCK, mode)
  if (fstatSync(fd).isFile()) return fd
  const errno = fstatSync(fd).isDirectory() ? 'EISDIR' : 'EINVAL'
  closeSync(fd)
  throw Object.assign(new Error(errno), { code: errno })
}

function copy(path: string, from: number, length: number): void {
  const fd = openFile(path, O_RDONLY)
  const chunk = Buffer.allocUnsafe(CHUNK)
  try {
    for (let at = from, left = length; left > 0; ) {
      const n = readSync(fd, chunk, 0, Math.min(CHUNK, left), at)
      if (n === 0) return
      writeAll(1, chunk.subarray(0, n))
      at += n
      left -= n
    }
  } finally {
    closeSync(fd)
  }
}

function take(path: string, executable: boolean): void {
  mkdirSync(dirname(path), { recursive: true })
  const fd = openFile(path, O_WRONLY | O_CREAT | O_TRUNC, executable ? 0o755 : 0o644)
  const chunk = Buffer.allocUnsafe(CHUNK)
  try {
    for (let n = readSync(0, chunk); n > 0; n = readSync(0, chunk)) writeAll(fd, chunk.subarray(0, n))
  } finally {
    closeSync(fd)
  }
}

function list(path: string, most: number): void {
  const entries = readdirSync(path, { withFileTypes: true })
  entries.sort((a, b) => (a.name < b.name ? -1 : 1))
  for (const entry of entries.slice(0, most)) {
    const kind = entry.isFile()
      ? 'file'
      : entry.isDirectory()
        ? 'directory'
        : entry.isSymbolicLink()
          ? 'link'
          : 'other'
    say(1, { name: entry.name, kind, size: kind === 'file' ? sizeOf(join(path, entry.name)) : null })
  }
  if (entries.length > most) say(1, { more: entries.length - most })
}

/** Removes a link itself, never its target. */
function remove(path: string, recursive: boolean): void {
  if (!lstatSync(path).isDirectory()) unlinkSync(path)
  else if (recursive) rmSync(path, { recursive })
  else rmdirSync(path)
}

function sizeOf(path: string): number | null {
  try {
    return lstatSync(path).size
  } catch {
    // It was removed meanwhile. Only its name is known.
    return null
  }
}

/** Writes one line of JSON. */
const say = (fd: number, value: object): void => writeAll(fd, `${JSON.stringify(value)}\n`)
