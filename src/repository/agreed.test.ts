import { expect, test } from 'bun:test'
import { agreed, planSync, type SyncRules } from './plan-sync.ts'
import type { Head, RepositoryState } from './state.ts'

const MAIN = 'refs/heads/main'
const head = (branch: string, commit: string): Head => ({ branch, commit, isBusy: false, isOpen: false })
const main = head(MAIN, 'A')
const topic = head('refs/heads/topic', 'B')
const at = (commit: string, now: Head): RepositoryState => ({
  refs: new Map([[MAIN, commit]]),
  heads: new Map([['.', now]]),
  stashes: [],
  largeFiles: [],
})
const before = { refs: new Map([[MAIN, 'A']]), heads: new Map([['.', main]]), stashes: new Set<string>() }
const rules = (synced: SyncRules['synced']): SyncRules => ({
  synced,
  maxNew: 1000,
  crosses: /^refs\/heads\//,
  records: ['.'],
  judge: () => undefined,
  contains: async () => false,
  consentToNew: async () => [],
  consentToStep: async () => [],
})

test('a sandbox that moves during a sync, and back, is not moved again by the next one', async () => {
  const theirs = at('B', topic)
  const now = at('A', main)
  const synced = agreed({ own: theirs, now, theirs, records: ['.'] }, before)
  expect([synced.refs.get(MAIN), synced.heads.get('.')]).toEqual(['B', topic])
  const back = await planSync(theirs, now, rules(synced))
  expect([back.refs, back.heads]).toEqual([[], []])
  const out = await planSync(now, theirs, rules(synced))
  expect(out.refs).toEqual([{ name: MAIN, old: 'B', new: 'A' }])
  expect(out.heads).toEqual([{ record: '.', head: main }])
})

test('a difference that the host did not take over is seen again', () => {
  const own = at('B', topic)
  const synced = agreed({ own, now: own, theirs: at('C', main), records: ['.'] }, before)
  expect([synced.refs.get(MAIN), synced.heads.get('.')]).toEqual(['A', main])
})
