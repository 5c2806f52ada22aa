/**
 * Files as the sandbox sees them. pen's file tool opens them inside, with the rights of every other program there. Nothing is opened
 * on the host, so no path, link or race can lead out. The tool's output is hostile and read within bounds.
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
import { Command, type SandboxContext } from './command.ts'
import { pathInside, toBytes } from './exec-options.ts'
import { SandboxError, type SandboxErrorCode } from './sandbox-error.ts'
import { judgeAccess } from './supervisor-connection.ts'

export interface ReadOptions {
  /** The first byte. Default: 0. */
  readonly from?: number | undefined
  /** How many bytes to read at most. Without it, a file above 10 MiB is an error. */
  readonly length?: number | undefined
}

export interface WriteOptions {
  readonly executable?: boolean | undefined
}

export interface DeleteOptions {
  /** Also deletes a directory with its contents. */
  readonly recursive?: boolean | undefined
}

export interface Entry {
  readonly name: string
  readonly kind: 'file' | 'directory' | 'link' | 'other'
  /** In bytes; null for everything but files. */
  readonly size: number | null
}

export interface Listing {
  readonly entries: readonly Entry[]
  /** How many entries are not listed. */
  readonly more: number
}

export interface SearchOptions {
  /** A file or a directory. Default: the project. */
  readonly path?: string | undefined
  readonly ignoreCase?: boolean | undefined
  /** Searches only files that match: `*.ts`, `src/x*.ts`, or part of a path. */
  readonly name?: string | undefined
  /** Default: 200. */
  readonly maxMatches?: number | undefined
}

export interface SearchResult {
  /** `line` starts at 1. It is 0 for a file that was found by name. */
  readonly matches: readonly Match[]
  /** Whether there are more matches. */
  readonly more: boolean
  /** Files that were not searched, because they have more than 8 MiB. */
  readonly tooLong: readonly string[]
}

const READ_SHAPE: Shape<ReadOptions> = { from: 'number', length: 'number' }

const SEARCH_SHAPE: Shape<SearchOptions> = {
  path: 'text',
  ignoreCase: 'boolean',
  name: 'text',
  maxMatches: 'number',
}

type FileOrder = PlainFileOrder | SearchOrder

const MAX_BYTES = 10 * 2 ** 20
const MAX_ENTRIES = 2000
const TIMEOUT_MS = 60_000

export class SandboxFiles {
  readonly #context: SandboxContext

  /** @internal */
  constructor(context: SandboxContext) {
    this.#context = context
  }

  async read(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    checkOptions('files.read()', options, READ_SHAPE)
    const length = countOf('length', options.length ?? MAX_BYTES)
    const order = { op: 'read', path: this.#path(path), from: countOf('from', options.from ?? 0) } as const
    // One extra byte shows whether the file is longer.
    const ask = options.length === undefined ? length + 1 : length
    const bytes = await this.#run({ ...order, length: ask }, ask)
    if (bytes.length <= length) return bytes
    throw new SandboxError('LIMIT', {
      what: `${path} is longer than ${length} bytes`,
      hint: 'read it in parts with from and length',
    })
  }

  async readText(path: string, options: ReadOptions = {}): Promise<string> {
    return new TextDecoder().decode(await this.read(path, options))
  }

  /** Also creates missing parent directories. */
  async write(path: string, content: string | Uint8Array, options: WriteOptions = {}): Promise<void> {
    checkValue('files.write()', 'the content', content, 'bytes')
    checkOptions('files.write()', options, { executable: 'boolean' })
    await this.#checkFirst('write', this.#path(path))
    const order = { op: 'write', path: this.#path(path), executable: options.executable === true } as const
    await this.#run(order, 0, toBytes(content))
  }

  /** A file, a link or an empty directory. */
  async delete(path: string, options: DeleteOptions = {}): Promise<void> {
    checkOptions('files.delete()', options, { recursive: 'boolean' })
    await this.#checkFirst('delete', this.#path(path))
    await this.#run({ op: 'delete', path: this.#path(path), recursive: options.recursive === true }, 0)
  }

  async list(path = '.'): Promise<Listing> {
    const lines = await this.#lines({ op: 'list', path: this.#path(path), most: MAX_ENTRIES })
    const entries = lines.flatMap(line => (typeof line['name'] === 'string' ? [entryOf(line)] : []))
    return { entries, more: Number(lines.at(-1)?.['more'] ?? 0) }
  }

  /** Matches a regular expression against each line. An empty pattern finds files by name alone. */
  async search(pattern: string, options: SearchOptions = {}): Promise<SearchResult> {
    checkValue('files.search()', 'the pattern', pattern, 'text')
    checkOptions('files.search()', options, SEARCH_SHAPE)
    const lines = await this.#lines({
      op: 'search',
      path: this.#path(options.path ?? '.'),
      pattern,
      ignoreCase: options.ignoreCase === true,
      name: options.name ?? '',
      most: countOf('maxMatches', options.maxMatches ?? 200),
    })
    const matches = lines.flatMap(({ path, line, text }) =>
      typeof path === 'string' && typeof line === 'number' && typeof text === 'string'
        ? [{ path, line, text }]
        : [],
    )
    const tooLong = lines.flatMap(({ tooLong: path }) => (typeof path === 'string' ? [path] : []))
    return { matches, more: lines.at(-1)?.['more'] === true, tooLong }
  }

  #path(path: string): string {
    return pathInside(path, this.#context.status.workspace)
  }

  async #lines(order: FileOrder): Promise<Record<string, unknown>[]> {
    const text = new TextDecoder().decode(await this.#run(order, MAX_BYTES))
    return text.split('\n').flatMap(line => {
      const value = jsonOf(line)
      return value === undefined ? [] : [value]
    })
  }

  async #run(order: FileOrder, maxBytes: number, input?: Uint8Array): Promise<Uint8Array> {
    const out: Uint8Array[] = []
    let size = 0
    let errorText = ''
    const argv = [PEN_INSIDE, FILE_MODE, writeFileOrder(order)]
    const request = { command: argv, timeoutMs: TIMEOUT_MS }
    const command = await Command.begin(this.#context, request, (stream, bytes) => {
      if (stream === 'stderr') {
        if (errorText.length <= 4096) errorText += new TextDecoder().decode(bytes)
      } else if (size < maxBytes) {
        out.push(bytes.slice(0, maxBytes - size))
        size += bytes.length
      }
    })
    if (input !== undefined) await command.execution.write(input)
    command.execution.endInput()
    const { exitCode, timedOut } = await command.ended()
    if (exitCode === EXIT.ok) return Buffer.concat(out)
    if (timedOut)
      throw new SandboxError('LIMIT', { what: `the file operation took longer than ${TIMEOUT_MS / 1000} s` })
    throw await this.#failure(order, parseToolError(errorText))
  }

  /** A protected path that does not exist yet could be created, and would be quarantined a moment later. Refuse it first. */
  async #checkFirst(op: 'write' | 'delete', path: string): Promise<void> {
    const { status, stateDir } = this.#context
    if (status.soft || !path.startsWith(`${status.workspace}/`)) return
    const judged = await judgeAccess(stateDir, 'write', path)
    if (judged !== null) throw denied(op, path, judged)
  }

  async #failure({ op, path }: FileOrder, { errno, refused }: ToolError): Promise<SandboxError> {
    const { status, stateDir } = this.#context
    const access = op === 'search' ? 'list' : op
    // The gate of a soft sandbox has judged and recorded the refusal already.
    let judged = status.soft ? refused : null
    if (!status.soft && REFUSALS.includes(errno))
      judged = await judgeAccess(stateDir, access === 'delete' ? 'write' : access, path)
    if (judged !== null) return denied(access, path, judged)
    return new SandboxError(ERROR_CODES[errno] ?? 'FILE_REFUSED', {
      what: `${path} ${ERROR_TEXTS[errno] ?? `cannot be used (${errno})`}`,
      at: path,
    })
  }
}

function countOf(name: string, value: number): number {
  if (Number.isSafeInteger(value) && value >= 0) return value
  throw usage(`${name} is ${value}`, 'expected a whole number, 0 or more')
}

const denied = (access: string, path: string, { why, reason, fix }: Judged): SandboxError =>
  new SandboxError('DENIED', {
    what: `the sandbox may not ${access} ${path}: ${why} (${reason})`,
    at: path,
    hint: 'continue without it, or ask the user',
    permission: fix,
  })

/** The error of the file tool. Programs in the sandbox may have forged it. */
interface ToolError {
  readonly errno: string
  readonly refused: Judged | null
}

const ERROR_CODES: Readonly<Record<string, SandboxErrorCode>> = { ENOENT: 'NOT_FOUND', EFBIG: 'LIMIT' }

const REFUSALS = ['ENOENT', 'EACCES', 'EPERM', 'EROFS', 'ENOTDIR', 'ELOOP', 'EXDEV']

const ERROR_TEXTS: Readonly<Record<string, string>> = {
  ENOENT: 'does not exist',
  EISDIR: 'is a directory',
  ENOTDIR: 'is not a directory',
  EINVAL: 'is not a file, or the pattern is not a regular expression',
  ENXIO: 'is not a file',
  ENOSPC: 'does not fit: the disk is full or the disk limit is reached',
  EACCES: 'cannot be opened: permission denied',
  EROFS: 'is read-only',
  ENOTEMPTY: 'is not empty: delete it with recursive',
  EFBIG: 'is too large: read it in parts, or name a smaller directory',
}

function parseToolError(text: string): ToolError {
  for (const line of text.split('\n')) {
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
