import { expect, test } from 'bun:test'
import type { Change } from '../../review/change.ts'
import type { Entry } from '../../review/entry.ts'
import { plain } from './colour.ts'
import { commitLines, leftLines, reviewList } from './review-list.ts'

const entry = { type: 'file', mode: 0o644, size: 1, content: 'x' } as Entry
const added = (path: string): Change => ({ path, kind: 'added', before: undefined, after: entry })
const deleted = (path: string): Change => ({ path, kind: 'deleted', before: entry, after: undefined })

const options = { paint: plain, renames: new Map<string, string>(), named: [], name: 'fix-a' }

test('commands in a list are for the sandbox that was named, and names of files stay as they are', () => {
  const tree = Array.from({ length: 20 }, (_, i) => added(`node_modules/${i}`))
  expect(reviewList([...tree, added('pen diff')], options)).toEqual([
    'changed:',
    '  + pen diff  (1 B)',
    'generated:',
    '  node_modules/  20 added, 20 B: pen diff --name fix-a node_modules',
  ])
  expect(commitLines(Array(101).fill('x'), options).at(-1)).toContain('pen git status --name fix-a')
  expect(leftLines(Array(51).fill({ path: 'x', why: 'y' }), options).at(-1)).toContain(
    'pen diff --name fix-a',
  )
})

test('a deleted file is listed by itself where its new name is folded, or where it has a mark', () => {
  const tree = Array.from({ length: 20 }, (_, i) => added(`node_modules/${i}`))
  const renames = new Map([
    ['node_modules/1', 'hidden'],
    ['new', 'old'],
    ['moved', 'conflict'],
  ])
  const changes = [...tree, added('new'), added('moved')]
  const gone = [deleted('hidden'), deleted('old'), { ...deleted('conflict'), conflict: 'edited' }]
  expect(reviewList([...changes, ...gone], { ...options, renames }).slice(0, -2)).toEqual([
    'changed on both sides:',
    '  - conflict  (edited)',
    'deleted:',
    '  - hidden',
    'changed:',
    '  > old → new  (1 B)',
    '  > conflict → moved  (1 B)',
  ])
})
