import { describe, expect, test } from 'bun:test'
import { judgeName } from './judge-name.ts'
import { planSync, type Synced, type SyncRules } from './plan-sync.ts'
import type { Head, RepositoryState } from './state.ts'

const [OLD, NEW] = ['1'.repeat(40), '2'.repeat(40)]

const head = (branch: string | undefined, commit: string | undefined): Head => ({
  branch,
  commit,
  isBusy: false,
  isOpen: false,
})

const state = (
  refs: Readonly<Record<string, string>>,
  at: Head,
  stashes: readonly string[] = [],
): RepositoryState => ({
  refs: new Map(Object.entries(refs)),
  heads: new Map([['.', at]]),
  stashes,
  largeFiles: [],
  others: new Map(),
  isInPart: false,
})

const main = { 'refs/heads/main': OLD }
const onMain = head('refs/heads/main', OLD)
const before: Synced = {
  refs: new Map(Object.entries(main)),
  heads: new Map([['.', onMain]]),
  stashes: new Set(),
  operations: new Map(),
}

const rules = (some: Partial<SyncRules> = {}): SyncRules => ({
  synced: before,
  maxNew: 1000,
  crosses: /^refs\/(?:heads|tags|notes)\//,
  records: ['.'],
  judge: judgeName,
  contains: async () => false,
  hasCommit: async () => false,
  consentToNew: async () => [],
  consentToStep: async () => [],
  ...some,
})

describe('HEAD', () => {
  for (const name of ['refs/heads/$(id)', `refs/replace/${OLD}`, 'refs/tags/v1', 'refs/heads/HEAD'])
    test(`does not move to ${name}`, async () => {
      const plan = await planSync(state(main, head(name, undefined)), state(main, onMain), rules())
      expect(plan.worktrees).toEqual([])
      expect(plan.refused.map(ref => ref.name)).toEqual([name])
    })

  test('the index follows the branch, also when the sandbox commits while its state is read', async () => {
    const here = state({ 'refs/heads/main': NEW }, head('refs/heads/main', '3'.repeat(40)))
    const plan = await planSync(here, state(main, onMain), rules())
    const [move] = plan.worktrees
    expect([move?.head, move?.ref, move?.index]).toEqual([undefined, plan.refs[0], { old: OLD, new: NEW }])
  })

  test('stays where a branch without a commit has none to follow', async () => {
    const plan = await planSync(
      state(main, head('refs/heads/pages', undefined)),
      state(main, onMain),
      rules(),
    )
    expect(plan.worktrees).toEqual([])
  })
})

test('a branch that is not checked out needs consent too', async () => {
  const here = state({ ...main, 'refs/heads/other': NEW }, onMain)
  const plan = await planSync(here, state(main, onMain), rules({ consentToNew: async () => ['.envrc'] }))
  expect(plan.refs).toEqual([])
  expect(plan.aside).toEqual([{ name: 'refs/heads/other', id: NEW, reason: 'consent', paths: ['.envrc'] }])
})

test('refs beyond the limit are counted, and the branch of HEAD comes first', async () => {
  const many = Object.fromEntries(Array.from({ length: 20 }, (_, i) => [`refs/heads/b${i}`, NEW]))
  const here = state({ ...many, ...main, 'refs/heads/mine': NEW }, head('refs/heads/mine', NEW))
  const plan = await planSync(here, state(main, onMain), rules({ maxNew: 5 }))
  expect(plan.refs).toHaveLength(5)
  expect(plan.refs[0]?.name).toBe('refs/heads/mine')
  expect(plan.left).toBe(16)
})

test('a stash that the other side dropped does not come back', async () => {
  const synced = { ...before, stashes: new Set([OLD]) }
  const plan = await planSync(state(main, onMain, [NEW, OLD]), state(main, onMain), rules({ synced }))
  expect(plan.stashes).toEqual([NEW])
})

test('a branch with the name of a remote is refused', () => {
  const there = new Map([['refs/remotes/origin/main', OLD]])
  expect(judgeName('refs/heads/origin', there)).toContain('remote')
  expect(judgeName('refs/heads/ORIGIN', there)).toContain('remote')
  expect(judgeName('refs/heads/other', there)).toBeUndefined()
})

test('two new refs that shadow each other do not both cross', async () => {
  const names = ['refs/heads/v1', 'refs/tags/v1', 'refs/heads/New', 'refs/heads/new']
  const refs = { ...main, ...Object.fromEntries(names.map(name => [name, NEW])) }
  const plan = await planSync(state(refs, onMain), state(main, onMain), rules())
  expect(plan.refs.map(({ name }) => name)).toEqual(['refs/heads/v1', 'refs/heads/New'])
  expect(plan.refused.map(({ name }) => name)).toEqual(['refs/tags/v1', 'refs/heads/new'])
})
