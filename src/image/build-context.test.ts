import { describe, expect, test } from 'bun:test'
import { staysWithin } from './build-context.ts'

describe('a link in a build context', () => {
  test.each([
    ['a', 0],
    ['./a/b', 0],
    ['../a', 1],
    ['../../a', 2],
    ['.', 0],
    ['..', 1],
    ['a/./b', 0],
    ['..a', 0],
  ])('%j, %d deep, stays within', (target, depth) => {
    expect(staysWithin(target, depth)).toBe(true)
  })

  test.each([
    ['/etc', 5],
    ['..', 0],
    ['../a', 0],
    ['../../a', 1],
    ['./../a', 0],
    ['.//..//../a', 1],
    // By way of another link, this may be anywhere.
    ['a/..', 3],
    ['a/../b', 3],
    ['../a/../../b', 3],
    ['', 1],
  ])('%j, %d deep, may lead out', (target, depth) => {
    expect(staysWithin(target, depth)).toBe(false)
  })
})
