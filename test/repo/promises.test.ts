/** docs/promises.md and the tests name each other. A promise is claimed only when a test covers it. */
import { describe, expect, test } from 'bun:test'
import { read, sources } from './sources.ts'

const PROMISE = /^- \*\*P(\d+)\*\* \((held|to come)\) \S/gm
const promises = [...read('docs/promises.md').matchAll(PROMISE)].map(([, number, status]) => ({
  number: Number(number),
  held: status === 'held',
}))

const guards = sources('test/conformance', 'test/attack')
const named = new Set(
  guards.flatMap(({ text }) => [...text.matchAll(/['"`]P(\d+) /g)].map(([, number]) => Number(number))),
)

describe('promises', () => {
  test('are numbered from 1 without a gap, and each has a status', () => {
    expect(promises.map(({ number }) => number)).toEqual(Array.from({ length: 25 }, (_, i) => i + 1))
  })

  test('that are called held have a test in test/conformance or test/attack that begins with their number', () => {
    expect(promises.filter(({ number, held }) => held && !named.has(number))).toEqual([])
  })

  test('that a test names are called held', () => {
    const held = new Set(promises.filter(promise => promise.held).map(({ number }) => number))
    expect([...named].filter(number => !held.has(number))).toEqual([])
  })

  test('begin the title of every conformance and attack test', () => {
    const nameless = guards.flatMap(({ path, text }) =>
      [...text.matchAll(/^\s*(?:test|it)(?:\.each\([\s\S]*?\))?\(\s*(['"`])(?!P\d+ )([^\n]*)/gm)].map(
        ([, , title]) => `${path}: ${title}`,
      ),
    )
    expect(nameless).toEqual([])
  })
})
