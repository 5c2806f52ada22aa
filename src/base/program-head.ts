/** What the kernel needs to start a program: the interpreter of a script, or the loader of a dynamic executable. */
import { closeSync, openSync, readSync } from 'node:fs'

export type ProgramHead =
  /** As the kernel reads it: with Windows line endings, the carriage return is part of the name. */
  | { readonly kind: 'script'; readonly interpreter: string; readonly argument: string }
  | { readonly kind: 'native'; readonly loader: string | undefined }
  | { readonly kind: 'unreadable' }

/** Linkers put program headers into the first page. */
export const PROGRAM_HEAD_BYTES = 4096

export function readProgramHead(path: string): ProgramHead {
  const bytes = Buffer.alloc(PROGRAM_HEAD_BYTES)
  try {
    const fd = openSync(path, 'r')
    try {
      return parseProgramHead(bytes.subarray(0, readSync(fd, bytes, 0, bytes.length, 0)))
    } finally {
      closeSync(fd)
    }
  } catch {
    return { kind: 'unreadable' }
  }
}

export function parseProgramHead(bytes: Buffer): ProgramHead {
  if (bytes.toString('latin1', 0, 2) === '#!') {
    const line = bytes.toString('utf8', 2).split('\n', 1)[0] ?? ''
    const [, interpreter = '', argument = ''] = /^[ \t]*([^ \t\0]*)[ \t]*(.*?)[ \t\r]*$/.exec(line) ?? []
    return interpreter.startsWith('/') ? { kind: 'script', interpreter, argument } : { kind: 'unreadable' }
  }
  return bytes.toString('latin1', 0, 4) === '\x7fELF'
    ? { kind: 'native', loader: loaderOf(bytes) }
    : { kind: 'unreadable' }
}

const PT_INTERP = 3

/** 64-bit little-endian ELF, as on every machine that pen runs on. */
function loaderOf(bytes: Buffer): string | undefined {
  if (bytes.length < 64 || bytes[4] !== 2 || bytes[5] !== 1) return undefined
  const table = Number(bytes.readBigUInt64LE(32))
  const size = bytes.readUInt16LE(54)
  const count = bytes.readUInt16LE(56)
  for (let i = 0; i < count; i++) {
    const at = table + i * size
    if (size < 56 || at + size > bytes.length) return undefined
    if (bytes.readUInt32LE(at) !== PT_INTERP) continue
    const start = Number(bytes.readBigUInt64LE(at + 8))
    const end = start + Number(bytes.readBigUInt64LE(at + 32)) - 1
    const loader = end <= bytes.length ? bytes.toString('utf8', start, end) : ''
    return loader.startsWith('/') ? loader : undefined
  }
  return undefined
}
