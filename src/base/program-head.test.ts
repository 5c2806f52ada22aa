import { describe, expect, test } from 'bun:test'
import { parseProgramHead, readProgramHead } from './program-head.ts'

/** The smallest 64-bit program that has a loader. */
function elf(loader: string, { count = 1, size = 56, bits = 2 } = {}): Buffer {
  const bytes = Buffer.alloc(64 + 56 + 64)
  bytes.write('\x7fELF', 'latin1')
  bytes[4] = bits
  bytes[5] = 1
  bytes.writeBigUInt64LE(64n, 32)
  bytes.writeUInt16LE(size, 54)
  bytes.writeUInt16LE(count, 56)
  bytes.writeUInt32LE(3, 64)
  bytes.writeBigUInt64LE(120n, 64 + 8)
  bytes.writeBigUInt64LE(BigInt(loader.length + 1), 64 + 32)
  bytes.write(loader, 120)
  return bytes
}

describe('the head of a program', () => {
  test.each([
    ['#!/bin/sh\n', '/bin/sh', ''],
    ['#! /usr/bin/env node\nrest', '/usr/bin/env', 'node'],
    ['#!/usr/bin/env -S deno run -A\r\n', '/usr/bin/env', '-S deno run -A'],
    ['#!/usr/bin/python3', '/usr/bin/python3', ''],
    ['#!/bin/sh\r\n', '/bin/sh\r', ''],
  ])('%j is a script', (text, interpreter, argument) => {
    expect(parseProgramHead(Buffer.from(text))).toEqual({ kind: 'script', interpreter, argument })
  })

  test('names the loader of a dynamic program', () => {
    expect(parseProgramHead(elf('/lib64/ld.so'))).toEqual({ kind: 'native', loader: '/lib64/ld.so' })
  })

  test('has no loader when the program is static, foreign or cut short', () => {
    const none = { kind: 'native' as const, loader: undefined }
    expect(parseProgramHead(elf('/lib64/ld.so', { count: 0 }))).toEqual(none)
    expect(parseProgramHead(elf('/lib/ld.so', { bits: 1 }))).toEqual(none)
    expect(parseProgramHead(elf('/lib/ld.so', { count: 65_535, size: 1 }))).toEqual(none)
    expect(parseProgramHead(elf('relative'))).toEqual(none)
    expect(parseProgramHead(elf('/lib64/ld.so').subarray(0, 100))).toEqual(none)
    expect(parseProgramHead(elf('/lib64/ld.so').subarray(0, 122))).toEqual(none)
  })

  test('is unreadable when it is neither, or absent', () => {
    expect(parseProgramHead(Buffer.from('hello'))).toEqual({ kind: 'unreadable' })
    expect(parseProgramHead(Buffer.from('#!'))).toEqual({ kind: 'unreadable' })
    expect(parseProgramHead(Buffer.from('#!node\n'))).toEqual({ kind: 'unreadable' })
    expect(readProgramHead('/nonexistent')).toEqual({ kind: 'unreadable' })
  })
})
