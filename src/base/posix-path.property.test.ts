import { describe, expect, test } from 'bun:test'
import { posix } from 'node:path'
import fc from 'fast-check'
import { basename, dirname, isAbsolute, join, resolve } from './posix-path.ts'

/** Few characters, so that slashes and dots meet often. */
const path = fc.string({ unit: fc.constantFrom('/', '.', 'a', 'ä', ' '), maxLength: 12 })
const parts = fc.array(path, { maxLength: 4 })

describe('paths as text', () => {
  test('of one path equal those of node:path', () => {
    fc.assert(
      fc.property(path, text => {
        expect([dirname(text), basename(text), isAbsolute(text)]).toEqual([
          posix.dirname(text),
          posix.basename(text),
          posix.isAbsolute(text),
        ])
      }),
      { numRuns: 5000 },
    )
  })

  test('of several paths equal those of node:path', () => {
    fc.assert(
      fc.property(parts, texts => {
        expect([join(...texts), resolve(...texts)]).toEqual([posix.join(...texts), posix.resolve(...texts)])
      }),
      { numRuns: 5000 },
    )
  })
})
