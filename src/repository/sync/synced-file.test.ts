import { describe, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { readSynced, syncedText, writeSynced } from './synced-file.ts'

function withFile<T>(act: (file: string) => T): T {
  const dir = mkdtempSync(join(tmpdir(), 'pen-synced-'))
  try {
    return act(`${dir}/synced`)
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

const A = 'a'.repeat(40)
const B = 'b'.repeat(64)

describe('the record of the last sync', () => {
  test('is read from the HEAD files and packed-refs of the start', () =>
    withFile(file => {
      const heads = new Map([
        ['.', 'ref: refs/heads/main\n'],
        ['worktrees/w', `${B}\n`],
        ['worktrees/new', 'ref: refs/heads/unborn\n'],
      ])
      const packed = `# pack-refs with: peeled fully-peeled sorted \n${A} refs/heads/main\n${A} refs/tags/v1\n^${B}\n`
      writeFileSync(file, syncedText(heads, Buffer.from(packed), [B]))
      const synced = readSynced(file)
      expect([...synced.stashes]).toEqual([B])
      expect(Object.fromEntries(synced.refs)).toEqual({ 'refs/heads/main': A, 'refs/tags/v1': A })
      expect([...synced.heads].map(([record, { branch, commit }]) => [record, branch, commit])).toEqual([
        ['.', 'refs/heads/main', A],
        ['worktrees/w', undefined, B],
        ['worktrees/new', 'refs/heads/unborn', undefined],
      ])
    }))

  test('stays the same when it is written and read again', () => {
    const id = fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: 40, maxLength: 40 })
    const name = fc.constantFrom('refs/heads/main', 'refs/heads/a/b', 'refs/tags/größe', 'refs/notes/日本')
    const record = fc.constantFrom('.', 'worktrees/a', 'worktrees/b.c-d')
    const head = fc.oneof(
      name.map(branch => ({ branch })),
      id.map(commit => ({ commit })),
    )
    fc.assert(
      fc.property(fc.dictionary(name, id), fc.dictionary(record, head), (refs, some) =>
        withFile(file => {
          const heads = new Map(
            Object.entries(some).map(([at, one]) => {
              const branch = 'branch' in one ? one.branch : undefined
              const commit = 'commit' in one ? one.commit : refs[one.branch]
              return [at, { branch, commit, isBusy: false, isOpen: false }]
            }),
          )
          const operations = new Map(Object.keys(some).map(at => [at, 'd'.repeat(64)]))
          const stashes = new Set(Object.values(refs))
          const synced = { refs: new Map(Object.entries(refs)), heads, stashes, operations }
          writeSynced(file, synced)
          expect(readSynced(file)).toEqual(synced)
        }),
      ),
      { numRuns: 200 },
    )
  })

  test('without a HEAD that can be read has none for that worktree', () =>
    withFile(file => {
      writeFileSync(file, syncedText(new Map([['.', '']]), Buffer.from(`${A} refs/heads/main\n`), []))
      expect(readSynced(file).heads.get('.')?.branch).toBeUndefined()
      expect(readSynced(file).heads.get('.')?.commit || undefined).toBeUndefined()
    }))
})
