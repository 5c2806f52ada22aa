/**
 * The nested repositories that a repository's index lists. A plain `git status` on the host enters each and obeys its
 * settings, including `core.fsmonitor`.
 */
import { readdirSync } from 'node:fs'
import { absent, lookAt } from '../../base/beneath/look-at.ts'
import { PenError } from '../../base/error.ts'
import { recall, remember } from '../../base/fact-cache.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { isText } from '../non-utf8-directories.ts'

export interface Gitlinks {
  /** Relative to the top of the working tree. Hostile text. */
  readonly paths: readonly string[]
  /** False when the index is too large, cannot be parsed, or lists a non-UTF-8 name. */
  readonly complete: boolean
}

const MAX_INDEX = 256 * 1024 * 1024
/** pen parses it once a second: the sandbox may change a mapped file without a new time. 64 MB take 0.1 s. */
const MAX_MADE_INDEX = 64 * 1024 * 1024
const MAX_LINKS = 1000
const WORTH_CACHING = 1_000_000n
/** The mode 160000 as it stands in an entry. */
const GITLINK = Buffer.from([0, 0, 0xe0, 0])
const NAME_LENGTH = 0xfff
const EXTENDED = 0x4000

/** A search of an index with 200,000 entries takes 25 ms. `cache` is a file in pen's state. */
export function gitlinks(gitDir: string, cache: string): Gitlinks {
  const files = ['index', ...sharedIndexes(gitDir)].map(name => `${gitDir}/${name}`)
  const stats = files.flatMap(file => lookAt(file) ?? [])
  if (stats.every(({ size }) => size < WORTH_CACHING)) return searchFiles(files)
  const key = [
    gitDir,
    ...stats.map(({ dev, ino, size, ctimeNs }) => `${dev}.${ino}.${size}.${ctimeNs}`),
  ].join(' ')
  const known = recall<Gitlinks>(cache, key)
  if (known !== undefined) return known
  const found = searchFiles(files)
  remember(cache, key, found)
  return found
}

function searchFiles(files: readonly string[]): Gitlinks {
  const found = files.map(readLinks)
  const paths = [...new Set(found.flatMap(links => links.paths))]
  return {
    paths: paths.slice(0, MAX_LINKS),
    complete: paths.length <= MAX_LINKS && found.every(({ complete }) => complete),
  }
}

/** `git update-index --split-index` keeps most entries in files of these names. */
function sharedIndexes(gitDir: string): readonly string[] {
  try {
    return readdirSync(gitDir).filter(name => name.startsWith('sharedindex.'))
  } catch (error) {
    return absent(error, gitDir) ?? []
  }
}

function readLinks(file: string): Gitlinks {
  try {
    const bytes = readRegularFile(file, { maxBytes: MAX_INDEX })
    // Most indexes have none, and a search is faster than a parse.
    if (bytes === undefined || !bytes.includes(GITLINK)) return { paths: [], complete: true }
    return parseIndex(bytes)
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    return { paths: [], complete: false }
  }
}

/** Extensions that lead to no other entries. git writes others only when a setting asks for them. */
const HARMLESS = ['TREE', 'REUC', 'UNTR', 'FSMN']

/**
 * For an index that a sandbox writes. True only when pen understands all of it: a shared index, or a table of offsets
 * (EOIE), would make git read other entries. `idBytes` is the length of an object id, as the repository's settings say.
 */
export function isWithoutGitlinks(file: string, idBytes: number): boolean {
  try {
    const bytes = readRegularFile(file, { maxBytes: MAX_MADE_INDEX }) ?? Buffer.alloc(0)
    const { paths, complete, next } = parseEntries(bytes, idBytes)
    const end = bytes.length - idBytes
    const name = (from: number): string => bytes.toString('latin1', from, from + 4)
    let at = next
    while (at + 8 <= end && HARMLESS.includes(name(at))) at += 8 + bytes.readUInt32BE(at + 4)
    return complete && paths.length === 0 && at === end && name(end - idBytes - 12) !== 'EOIE'
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    return false
  }
}

/** Versions 2 to 4 of the format, in a time that grows with the file alone. SHA-256 repositories have longer object names; the entries show which kind it is. */
export function parseIndex(bytes: Buffer): Gitlinks {
  const [a, b] = [parseEntries(bytes, 20), parseEntries(bytes, 32)]
  const { paths, complete } = a.complete || !b.complete ? a : b
  return { paths, complete }
}

const PATH_MAX = 4096

function parseEntries(bytes: Buffer, hash: number): Gitlinks & { readonly next: number } {
  const paths: string[] = []
  const end = bytes.length - hash
  let at = 12
  const stop = (complete: boolean) => ({ paths, complete, next: at })
  if (bytes.length < 12 + hash || bytes.toString('latin1', 0, 4) !== 'DIRC') return stop(false)
  const version = bytes.readUInt32BE(4)
  if (version < 2 || version > 4) return stop(false)
  // In version 4 an entry keeps the start of the name before it. Only what is new is copied: the index may be a sandbox's.
  const name = Buffer.alloc(PATH_MAX)
  let length = 0
  let areText = true
  for (let left = bytes.readUInt32BE(8); left > 0; left--) {
    const start = at
    if (at + 42 + hash > end) return stop(false)
    // git looks at these four bits alone.
    const isLink = (bytes[at + 26] ?? 0) >>> 4 === 0xe
    const flags = bytes.readUInt16BE(at + 40 + hash)
    at += 42 + hash + ((flags & EXTENDED) !== 0 ? 2 : 0)
    let kept = 0
    if (version === 4) {
      const prefix = readOffset(bytes, at)
      if (prefix === undefined || prefix.value > length) return stop(false)
      kept = length - prefix.value
      at = prefix.next
    }
    // git believes the length in the flags, too.
    const said = flags & NAME_LENGTH
    const nul = said === NAME_LENGTH ? bytes.indexOf(0, at) : at + said - kept
    if (nul < at || nul > end || bytes[nul] !== 0 || kept + nul - at > PATH_MAX) return stop(false)
    length = kept + nul - at
    if (version === 4 || isLink) bytes.copy(name, kept, at, nul)
    const shown = isLink ? name.subarray(0, length) : undefined
    if (shown !== undefined && (!isText(shown) || shown.includes(0))) areText = false
    else if (shown !== undefined) paths.push(shown.toString('utf8'))
    // Padded with 1 to 8 NULs to a multiple of eight, but in version 4.
    at = version === 4 ? nul + 1 : start + ((nul - start + 8) & ~7)
  }
  return stop(areText)
}

/** A number of seven bits a byte, where each continuation adds one. */
function readOffset(bytes: Buffer, start: number): { value: number; next: number } | undefined {
  let value = 0
  for (let at = start; at < start + 4; at++) {
    const byte = bytes[at]
    if (byte === undefined) return undefined
    value = at === start ? byte & 0x7f : ((value + 1) << 7) | (byte & 0x7f)
    if ((byte & 0x80) === 0) return { value, next: at + 1 }
  }
  return undefined
}
