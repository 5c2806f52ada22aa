import { expect, test } from 'bun:test'
import { nearest } from './nearest.ts'

const FLAGS = ['allow', 'offline', 'profile', 'dry-run-policy']

test('a missing, extra, wrong or swapped letter finds its word', () => {
  for (const word of ['alow', 'alllow', 'allew', 'lalow', 'ALLOW']) expect(nearest(word, FLAGS)).toBe('allow')
  expect(nearest('dryrun-policy', FLAGS)).toBe('dry-run-policy')
})

test('a different word finds nothing', () => {
  expect(nearest('memory', FLAGS)).toBeUndefined()
  expect(nearest('x', FLAGS)).toBeUndefined()
  expect(nearest('allow', [])).toBeUndefined()
})

test('a very long word is not compared', () => {
  expect(nearest('a'.repeat(100_000), FLAGS)).toBeUndefined()
})
