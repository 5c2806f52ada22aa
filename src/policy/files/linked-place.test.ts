import { expect, test } from 'bun:test'
import { protectLinked } from './linked-place.ts'

const paths = (count: number, of: (i: number) => string): string[] =>
  protectLinked(
    Array.from({ length: count }, (_, i) => ({ name: `~/.x${i}`, paths: [of(i)] })),
    [],
    '/w',
  ).map(({ rule }) => rule.path)

test('few places are protected one by one', () => {
  expect(paths(3, i => `/w/a/${i}`)).toEqual(['/w/a/0', '/w/a/1', '/w/a/2'])
})

test('too many are protected by the directories that hold them, and by the project when these are too many', () => {
  expect(paths(500, i => `/w/${i % 2}/${i}`)).toEqual(['/w/0', '/w/1'])
  expect(paths(500, i => `/w/${i}`)).toEqual(['/w'])
  expect(paths(500, i => (i === 0 ? '/other/x' : `/w/${i}`))).toEqual(['/other/x', '/w'])
})
