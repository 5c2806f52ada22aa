/** Random file operations inside a layer, then accept: the project is what the same operations make of a plain copy. */
import { expect, test } from 'bun:test'
import { cpSync } from 'node:fs'
import fc from 'fast-check'
import { operation, perform, treeOf } from '../../test/file-operations.ts'
import { TestLayer } from '../../test/review-layer.ts'

const RUNS = 15
const some = (maxLength: number) => fc.array(operation, { minLength: 1, maxLength })

/** Without times, for files that are as before: only a file that is applied gets its time. */
const withoutTimes = (tree: ReadonlyMap<string, string>) =>
  [...tree].map(([path, what]) => [path, what.replace(/^(\d+) [\d.]+ /, '$1 ')])

test('after accept the project equals a plain copy with the same operations', () => {
  fc.assert(
    fc.property(some(30), some(30), (before, operations) => {
      using layer = new TestLayer()
      perform(layer.workspace, before, 1_000_000)
      const plain = `${layer.base}/plain`
      cpSync(layer.workspace, plain, { recursive: true, preserveTimestamps: true, verbatimSymlinks: true })
      perform(plain, operations, 2_000_000)
      layer.performInside(operations, 2_000_000)
      const listed = layer.changes
      const { left } = layer.accept()
      expect(left).toEqual([])
      const [is, should] = [treeOf(layer.workspace), treeOf(plain)]
      expect(withoutTimes(is)).toEqual(withoutTimes(should))
      for (const { path, kind } of listed)
        if (kind !== 'mode' && kind !== 'deleted')
          expect(is.get(utf8(path))).toEqual(should.get(utf8(path)) ?? '')
      expect(layer.list).toEqual([])
    }),
    { numRuns: RUNS },
  )
}, 60_000)

const utf8 = (path: string): string => Buffer.from(path, 'latin1').toString('utf8')

test('what the user edits before or after the list stays, and everything else is applied', () => {
  fc.assert(
    fc.property(some(20), some(20), some(6), some(6), (before, operations, early, late) => {
      using layer = new TestLayer()
      perform(layer.workspace, before, 1_000_000)
      Bun.sleepSync(25)
      const made = Date.now()
      layer.performInside(operations, 2_000_000)
      const atStart = treeOf(layer.workspace)
      perform(layer.workspace, early, 3_000_000)
      const changes = layer.marked(made)
      perform(layer.workspace, late, 4_000_000)
      const edited = [...treeOf(layer.workspace)].filter(
        ([path, what]) => atStart.get(path) !== what && !what.startsWith('directory'),
      )
      layer.accept(changes.filter(({ conflict }) => conflict === undefined))
      const after = treeOf(layer.workspace)
      for (const [path, what] of edited) expect([path, after.get(path)]).toEqual([path, what])
      expect([...after.keys()].filter(path => path.includes('.pen-'))).toEqual([])
    }),
    { numRuns: RUNS },
  )
}, 60_000)
