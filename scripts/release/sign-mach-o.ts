/**
 * Signs a macOS program ad hoc, in place of the signature that it has. Bun signs programs for arm64 so, and leaves those
 * for x86-64 with the signature of Bun itself. Neither is true of a program whose doors were closed, and macOS ends a
 * program in which a page does not have the hash that the signature says.
 */
import { createHash } from 'node:crypto'

const MACH_O_64 = 0xfeedfacf
const SEGMENT = 0x19
const CODE_SIGNATURE = 0x1d
const SUPER_BLOB = 0xfade0cc0
const CODE_DIRECTORY = 0xfade0c02
/** The oldest version with the bounds of the program's code, which macOS on arm64 asks for. */
const VERSION = 0x20400
const AD_HOC = 2
const MAIN_BINARY = 1n
const SHA256 = { kind: 2, bytes: 32 } as const
const PAGE = { bits: 12, bytes: 4096 } as const
const NAME = 'pen\0'
const BLOB_HEADER = 20
const DIRECTORY_HEADER = 88
/** Of memory, on arm64. */
const LARGEST_PAGE = 0x4000

export function sign(program: Buffer): Buffer {
  const { signature, text, linkedit } = findCommands(program)
  const end = program.readUInt32LE(signature + 8)
  const pages = Math.ceil(end / PAGE.bytes)
  const length = DIRECTORY_HEADER + NAME.length + pages * SHA256.bytes
  const size = align(BLOB_HEADER + length, 16)
  const signed = Buffer.alloc(end + size)
  program.copy(signed, 0, 0, end)

  const tail = BigInt(end + size) - signed.readBigUInt64LE(linkedit + 40)
  signed.writeUInt32LE(size, signature + 12)
  signed.writeBigUInt64LE(tail, linkedit + 48)
  signed.writeBigUInt64LE(BigInt(align(Number(tail), LARGEST_PAGE)), linkedit + 32)

  const words = [SUPER_BLOB, BLOB_HEADER + length, 1, 0, BLOB_HEADER]
  const hashes = DIRECTORY_HEADER + NAME.length
  words.push(CODE_DIRECTORY, length, VERSION, AD_HOC, hashes, DIRECTORY_HEADER, 0, pages, end)
  for (const [i, word] of words.entries()) signed.writeUInt32BE(word, end + 4 * i)
  const directory = end + BLOB_HEADER
  signed.set([SHA256.bytes, SHA256.kind, 0, PAGE.bits], directory + 36)
  signed.writeBigUInt64BE(signed.readBigUInt64LE(text + 40), directory + 64)
  signed.writeBigUInt64BE(signed.readBigUInt64LE(text + 48), directory + 72)
  signed.writeBigUInt64BE(MAIN_BINARY, directory + 80)
  signed.write(NAME, directory + DIRECTORY_HEADER, 'latin1')
  for (let page = 0; page < pages; page++) {
    const bytes = signed.subarray(page * PAGE.bytes, Math.min((page + 1) * PAGE.bytes, end))
    createHash('sha256')
      .update(bytes)
      .digest()
      .copy(signed, directory + hashes + page * SHA256.bytes)
  }
  return signed
}

interface Commands {
  readonly signature: number
  readonly text: number
  readonly linkedit: number
}

/** Where the load commands are that a signature changes or speaks of. */
function findCommands(program: Buffer): Commands {
  if (program.readUInt32LE(0) !== MACH_O_64) throw new Error('not a macOS program')
  const found: { -readonly [name in keyof Commands]?: number } = {}
  const count = program.readUInt32LE(16)
  for (let i = 0, at = 32; i < count; i++, at += program.readUInt32LE(at + 4)) {
    const command = program.readUInt32LE(at)
    const name = command === SEGMENT ? program.toString('latin1', at + 8, at + 24).replaceAll('\0', '') : ''
    if (command === CODE_SIGNATURE) found.signature = at
    else if (name === '__TEXT') found.text = at
    else if (name === '__LINKEDIT') found.linkedit = at
  }
  const { signature, text, linkedit } = found
  if (signature === undefined || text === undefined || linkedit === undefined)
    throw new Error('the macOS program has no room for a signature')
  return { signature, text, linkedit }
}

const align = (size: number, to: number): number => Math.ceil(size / to) * to
