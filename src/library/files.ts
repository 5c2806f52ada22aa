/**
 * Files as the sandbox has them: pen's own tool inside opens them, with the rights of every other program there. Nothing is opened
 * on the host, so no path, link or race can lead out. What comes back is hostile, and read within bounds.
 */
import { EXIT } from '../base/error.ts'
import {
  FILE_MODE,
  type Match,
  type PlainFileOrder,
  type SearchOrder,
  writeFileOrder,
} from '../protocol/file-order.ts'
import { PEN_INSIDE } from '../protocol/guest-paths.ts'
import type { Judged } from '../run/judge-refusal.ts'
import { checkOptions, checkValue, type Shape, usage } from './check-options.ts'
import { Command, type Surroundings } from './command.ts'
import { pathInside } from './exec-options.ts'
import { SandboxError, type SandboxErrorCode } from './sandbox-error.ts'
import { askFor } from './supervisor-connection.ts'

export interface ReadOptions {
  /** The first byte; 0 where nothing is said. */
  readonly from?: number | undefined
  /** No more bytes than these; 10 MiB where nothing is said. A longer file is an error then, here it is cut. */
  readonly length?: number | undefined
}

export interface WriteOptions {
  readonly executable?: boolean | undefined
}

export interface DeleteOptions {
  /** A directory with all in it. */
  readonly recursive?: boolean | undefined
}

export interface Entry {
  readonly name: string
  readonly kind: 'file' | 'directory' | 'link' | 'other'
  /** Null for what is no file. */
  readonly size: number | null
}

export interface Listing {
  readonly entries: readonly Entry[]
  /** How many more there are. */
  readonly more: number
}

export interface SearchOptions {
  /** A file or a directory; the project where nothing is said. */
  readonly path?: string | undefined
  readonly ignoreCase?: boolean | undefined
  /** Only in files like this: `*.ts`, `src/x*.ts`, or part of a path. */
  readonly name?: string | undefined
  /** 200 where nothing is said. */
  readonly most?: number | undefined
}

export interface Found {
  /** `line` is from 1, and 0 for a file that was found by its name. */
  readonly matches: readonly Match[]
  readonly more: boolean
}

const READ_SHAPE: Shape<ReadOptions> = { from: 'number', length: 'number' }

const SEARCH_SHAPE: Shape<SearchOptions> = {
  path: 'text',
  ignoreCase: 'boolean',
  name: 'text',
  most: 'number',
}

type FileOrder = PlainFileOrder | SearchOrder

const MOST_BYTES = 10 * 2 ** 20
const MOST_ENTRIES = 2000
const TIMEOUT_MS = 60_000

export class SandboxFiles {
  readonly #inside: Surroundings

  /** @internal */
  constructor(inside: Surroundings) {
    this.#inside = inside
  }

  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    checkOptions('files.read()', options, READ_SHAPE)
    const length = countOf('length', options.length ?? MOST_BYTES)
    const order = { op: 'read', path: this.#path(path), from: countOf('from', options.from ?? 0) } as const
    // One more than wanted tells whether there is more.
    const ask = options.length === undefined ? length + 1 : length
    const bytes = await this.#run({ ...order, length: ask }, ask)
    if (bytes.length <= length) return bytes
    throw new SandboxError('LIMIT', {
      what: `${path} is longer than ${length} bytes`,
      hint: 'read it in parts, with from and length',
    })
  }

  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options))
  }

  /** Makes the directories above it. */
  async write(path: string, content: string | Uint8Array, options: WriteOptions = {}): Promise<void> {
    checkValue('files.write()', 'the content', content, 'bytes')
    checkOptions('files.write()', options, { executable: 'boolean' })
    const bytes = typeof content === 'string' ? new TextEncoder().encode(content) : content
    await this.#checkFirst('write', this.#path(path))
    await this.#run(
      { op: 'write', path: this.#path(path), executable: options.executable === true },
      0,
      bytes,
    )
  }

  /** A file, a link or an empty directory. */
  async delete(path: string, options: DeleteOptions = {}): Promise<void> {
    checkOptions('files.delete()', options, { recursive: 'boolean' })
    await this.#checkFirst('delete', this.#path(path))
    await this.#run({ op: 'delete', path: this.#path(path), recursive: options.recursive === true }, 0)
  }

  async list(path = '.'): Promise<Listing> {
    const lines = await this.#lines({ op: 'list', path: this.#path(path), most: MOST_ENTRIES })
    const entries = lines.flatMap(line => (typeof line['name'] === 'string' ? [entryOf(line)] : []))
    return { entries, more: Number(lines.at(-1)?.['more'] ?? 0) }
  }

  /** A regular expression, tried on each line; an empty one finds files by their name alone. */
  async search(pattern: string, options: SearchOptions = {}): Promise<Found> {
    checkValue('files.search()', 'the pattern', pattern, 'text')
    checkOptions('files.search()', options, SEARCH_SHAPE)
    const lines = await this.#lines({
      op: 'search',
      path: this.#path(options.path ?? '.'),
      pattern,
      ignoreCase: options.ignoreCase === true,
      name: options.name ?? '',
      most: countOf('most', options.most ?? 200),
    })
    const matches = lines.flatMap(({ path, line, text }) =>
      typeof path === 'string' && typeof line === 'number' && typeof text === 'string'
        ? [{ path, line, text }]
        : [],
    )
    return { matches, more: lines.at(-1)?.['more'] === true }
  }

  #path(path: string): string {
    return pathInside(path, this.#inside.workspace)
  }

  async #lines(order: FileOrder): Promise<Record<string, unknown>[]> {
    const text = new TextDecoder().decode(await this.#run(order, MOST_BYTES))
    return text.split('\n').flatMap(line => {
      const value = jsonOf(line)
      return value === undefined ? [] : [value]
    })
  }

  async #run(order: FileOrder, most: number, input?: Uint8Array): Promise<Uint8Array> {
    const out: Uint8Array[] = []
    let size = 0
    let said = ''
    const argv = [PEN_INSIDE, FILE_MODE, writeFileOrder(order)]
    const wanted = { command: argv, timeoutMs: TIMEOUT_MS }
    const command = await Command.begin(this.#inside, wanted, (stream, bytes) => {
      if (stream === 'stderr') said = said.length > 4096 ? said : said + new TextDecoder().decode(bytes)
      else if (size < most) {
        out.push(bytes.slice(0, most - size))
        size += bytes.length
      }
    })
    if (input !== undefined) await command.write(input)
    command.endInput()
    const { exitCode, timedOut } = await command.ended()
    if (exitCode === EXIT.ok) return Buffer.concat(out)
    if (timedOut) throw new SandboxError('LIMIT', { what: `it took longer than ${TIMEOUT_MS / 1000} s` })
    throw await this.#failure(order, toldIn(said))
  }

  /** A protected place that is not there yet could be made, and would be taken away a moment later: whoever asks hears it now. */
  async #checkFirst(op: 'write' | 'delete', path: string): Promise<void> {
    const { gated, workspace, stateDir } = this.#inside
    if (gated || !path.startsWith(`${workspace}/`)) return
    const judged = (await askFor(stateDir, { want: 'judge', access: 'write', path })) as Judged | null
    if (judged !== null) throw denied(op, path, judged)
  }

  async #failure({ op, path }: FileOrder, told: Told): Promise<SandboxError> {
    const access = op === 'search' ? 'list' : op
    const judged = await this.#judged(access, path, told)
    if (judged !== null) return denied(access, path, judged)
    const { errno } = told
    return new SandboxError(CODES[errno] ?? 'FILE_REFUSED', {
      what: `${path} ${WORDS[errno] ?? `cannot be used (${errno})`}`,
      at: path,
    })
  }

  /** The kernel said no, or there is nothing: the supervisor knows whether it was the policy, and records it. A gate has done both. */
  async #judged(op: Exclude<FileOrder['op'], 'search'>, path: string, told: Told): Promise<Judged | null> {
    if (this.#inside.gated) return told.refused
    if (!REFUSALS.includes(told.errno)) return null
    const access = op === 'delete' ? 'write' : op
    return (await askFor(this.#inside.stateDir, { want: 'judge', access, path })) as Judged | null
  }
}

function countOf(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw usage(`${name} is ${value}`, 'it takes a whole number, 0 or more')
}

const denied = (access: string, path: string, { why, reason, fix }: Judged): SandboxError =>
  new SandboxError('DENIED', {
    what: `the sandbox may not ${access} ${path}: ${why} (${reason})`,
    at: path,
    hint: 'do without it, or ask the user',
    permission: fix,
  })

/** What the file tool says went wrong. In a sandbox that programs share with it, they may have said it. */
interface Told {
  readonly errno: string
  readonly refused: Judged | null
}

const CODES: Readonly<Record<string, SandboxErrorCode>> = { ENOENT: 'NOT_FOUND', EFBIG: 'LIMIT' }

const REFUSALS = ['ENOENT', 'EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ELOOP', 'EXDEV']

const WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'is not there',
  EISDIR: 'is a directory',
  ENOTDIR: 'is no directory',
  EINVAL: 'is no file, or the pattern is no regular expression',
  ENXIO: 'is no file',
  ENOSPC: 'does not fit: the disk, or its limit, is full',
  EACCES: 'may not be opened',
  EROFS: 'may only be read',
  ENOTEMPTY: 'is not empty: delete it with all in it, or what is in it first',
  EFBIG: 'is too long, or too much is below it: take it in parts',
}

function toldIn(said: string): Told {
  for (const line of said.split('\n')) {
    const { errno, refused = null } = jsonOf(line) ?? {}
    if (typeof errno === 'string' && /^E[A-Z0-9]{1,15}$/.test(errno))
      return { errno, refused: refused as Judged | null }
  }
  return { errno: 'EIO', refused: null }
}

function jsonOf(line: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

const KINDS = ['file', 'directory', 'link', 'other'] as const

const entryOf = ({ name, kind, size }: Record<string, unknown>): Entry => ({
  name: String(name),
  kind: KINDS.find(one => one === kind) ?? 'other',
  size: typeof size === 'number' ? size : null,
})
