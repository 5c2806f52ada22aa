import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { HELD_HEAD } from './plan-heads.ts'
import { planSync, type SyncRules } from './plan-sync.ts'
import type { Head, RepositoryState } from './state.ts'

/** A history: B and C come after A, D after B, M after B and C. X is another root. */
const PARENTS: Readonly<Record<string, string>> = { A: '', B: 'A', C: 'A', D: 'B', M: 'BC', X: '' }

function contains(newer: string, older: string): boolean {
  return newer === older || [...(PARENTS[newer] ?? '')].some(parent => contains(parent, older))
}

const head = (branch: string | undefined, commit: string | undefined, more: Partial<Head> = {}): Head => ({
  branch,
  commit,
  isBusy: false,
  isOpen: false,
  ...more,
})

type Refs = Readonly<Record<string, string>>

const state = (
  refs: Refs,
  heads: Readonly<Record<string, Head>> = {},
  stashes: string[] = [],
): RepositoryState => ({
  refs: new Map(Object.entries(refs)),
  heads: new Map(Object.entries(heads)),
  stashes,
  largeFiles: [],
  others: new Map(),
  isInPart: false,
})

const rules = (was: Refs, more: Partial<SyncRules> = {}): SyncRules => ({
  synced: { refs: new Map(Object.entries(was)), heads: new Map(), stashes: new Set() },
  maxNew: 1000,
  crosses: /^refs\/(?:heads|tags|notes)\//,
  records: ['.'],
  judge: () => undefined,
  contains: async (newer, older) => contains(newer, older),
  hasCommit: async () => false,
  consentToNew: async () => [],
  consentToStep: async () => [],
  ...more,
})

const isIn = (refs: ReadonlyMap<string, string>, id: string): boolean =>
  [...refs.values()].some(other => contains(other, id))

const MAIN = 'refs/heads/main'

describe('a branch', () => {
  const cases: readonly [string, string, string, string][] = [
    // last sync, here, there, what happens
    ['A', 'A', 'A', 'nothing'],
    ['A', 'B', 'A', 'A→B'],
    ['A', 'X', 'A', 'A→X'],
    ['B', 'A', 'B', 'B→A'],
    ['A', 'A', 'B', 'nothing'],
    ['A', 'B', 'B', 'nothing'],
    ['A', 'B', 'C', 'aside B moved-there'],
    ['A', 'M', 'C', 'C→M'],
    ['A', 'C', 'M', 'nothing'],
    ['B', 'A', 'D', 'nothing'],
    ['B', 'A', 'C', 'nothing'],
    ['B', 'A', 'X', 'aside A moved-there'],
    ['', 'A', '', '→A'],
    ['', 'A', 'A', 'nothing'],
    ['', 'A', 'B', 'nothing'],
    ['', 'B', 'A', 'A→B'],
    ['', 'B', 'C', 'aside B moved-there'],
    ['', '', 'A', 'nothing'],
    ['A', '', 'A', 'deleted'],
    ['A', '', 'B', 'nothing'],
    ['A', '', '', 'nothing'],
    ['A', 'A', '', 'nothing'],
    ['A', 'B', '', 'aside B moved-there'],
  ]
  const refsOf = (id: string, name: string): Refs => (id === '' ? {} : { [name]: id })
  const happens = async (was: string, here: string, there: string, name: string): Promise<string> => {
    const plan = await planSync(
      state(refsOf(here, name)),
      state(refsOf(there, name)),
      rules(refsOf(was, name)),
    )
    const parts = [
      ...plan.refs.map(move => `${move.old ?? ''}→${move.new}`),
      ...plan.aside.map(({ id, reason }) => `aside ${id} ${reason}`),
      ...plan.deleted.map(() => 'deleted'),
    ]
    return parts.join(' ') || 'nothing'
  }
  test.each(cases)('%j at the last sync, %j here, %j there: %s', async (was, here, there, what) =>
    expect(await happens(was, here, there, MAIN)).toBe(what),
  )

  test.each([
    ['', 'A', '', '→A'],
    ['A', 'B', 'A', 'aside B tag'],
    ['A', 'B', 'C', 'aside B tag'],
    ['', 'B', 'A', 'aside B tag'],
    ['A', '', 'A', 'deleted'],
    ['A', 'A', 'B', 'nothing'],
  ])('as a tag: %j at the last sync, %j here, %j there: %s', async (was, here, there, what) =>
    expect(await happens(was, here, there, 'refs/tags/v1')).toBe(what),
  )

  test.each([
    'refs/remotes/origin/main',
    'refs/replace/A',
    'refs/stash',
    'refs/pen/x',
    'HEAD',
    'refs/bisect/bad',
  ])('named %s never crosses', async name => expect(await happens('', 'A', '', name)).toBe('nothing'))
})

describe('a branch that is checked out', () => {
  test('in a worktree of the host that is not in the sandbox is put aside', async () => {
    const there = state({ [MAIN]: 'A' }, { 'worktrees/other': head(MAIN, 'A') })
    const plan = await planSync(state({ [MAIN]: 'B' }), there, rules({ [MAIN]: 'A' }))
    expect([plan.refs, plan.aside]).toEqual([[], [{ name: MAIN, id: 'B', reason: 'checked-out' }]])
  })

  test.each(['here', 'there'])('waits while an operation is open %s', async where => {
    const busy = { '.': head(MAIN, 'A', { isBusy: true, isOpen: true }) }
    const idle = { '.': head(MAIN, 'A') }
    const plan = await planSync(
      state({ [MAIN]: 'B', 'refs/heads/other': 'B' }, where === 'here' ? busy : idle),
      state({ [MAIN]: 'A' }, where === 'there' ? busy : idle),
      rules({ [MAIN]: 'A' }),
    )
    expect(plan.waits).toBe(true)
    expect(plan.refs.map(({ name }) => name)).toEqual(['refs/heads/other'])
    expect(plan.worktrees).toEqual([])
  })

  test('moves with its index', async () => {
    const plan = await planSync(
      state({ [MAIN]: 'B' }, { '.': head(MAIN, 'B') }),
      state({ [MAIN]: 'A' }, { '.': head(MAIN, 'A') }),
      rules(
        { [MAIN]: 'A' },
        {
          synced: {
            refs: new Map([[MAIN, 'A']]),
            heads: new Map([['.', head(MAIN, 'A')]]),
            stashes: new Set(),
          },
        },
      ),
    )
    const move = { name: MAIN, old: 'A', new: 'B' }
    expect(plan).toMatchObject({
      refs: [move],
      worktrees: [{ record: '.', ref: move, index: { old: 'A', new: 'B' } }],
    })
  })

  test('and was put aside leaves HEAD and index where they are', async () => {
    const plan = await planSync(
      state({ [MAIN]: 'B' }, { '.': head(MAIN, 'B') }),
      state({ [MAIN]: 'C' }, { '.': head(MAIN, 'C') }),
      rules({ [MAIN]: 'A' }),
    )
    expect([plan.worktrees, plan.aside.length]).toEqual([[], 1])
  })
})

describe('HEAD', () => {
  const at = (from: Head, to: Head, was: Head, refs: Refs = { [MAIN]: 'A', 'refs/heads/x': 'B' }) =>
    planSync(
      state(refs, { '.': from }),
      state(refs, { '.': to }),
      rules(refs, {
        synced: {
          refs: new Map(Object.entries(refs)),
          heads: new Map([['.', was]]),
          stashes: new Set(),
        },
      }),
    )
  const [main, x] = [head(MAIN, 'A'), head('refs/heads/x', 'B')]

  test('switches to another branch, and the index follows', async () =>
    expect(await at(x, main, main)).toMatchObject({
      worktrees: [{ record: '.', from: main, head: x, index: { old: 'A', new: 'B' } }],
    }))

  test('is detached', async () => {
    const detached = head(undefined, 'B')
    expect(await at(detached, main, main)).toMatchObject({
      worktrees: [{ record: '.', from: main, head: detached, index: { old: 'A', new: 'B' } }],
    })
  })

  test('moves to a branch without a commit only where there is none yet', async () => {
    const orphan = head('refs/heads/new', undefined)
    expect(await at(orphan, main, main)).toMatchObject({ worktrees: [] })
    const none = head('refs/heads/none', undefined)
    expect(await at(orphan, none, none)).toMatchObject({
      worktrees: [{ record: '.', head: orphan, index: undefined }],
    })
  })

  test('stays when it was switched there', async () => {
    expect(await at(main, x, main)).toMatchObject({ worktrees: [] })
    expect(await at(head(undefined, 'C'), x, main)).toMatchObject({ worktrees: [] })
  })

  test('of a worktree that is not in the sandbox is left alone', async () => {
    const plan = await planSync(
      state({}, { 'worktrees/w': x }),
      state({}, { 'worktrees/w': main }),
      rules(
        {},
        {
          synced: {
            refs: new Map(),
            heads: new Map([['worktrees/w', main]]),
            stashes: new Set(),
          },
        },
      ),
    )
    expect(plan.worktrees).toEqual([])
  })
})

describe('what needs consent', () => {
  const consentToNew: SyncRules['consentToNew'] = async now => (now === 'B' ? ['libs/new'] : [])
  const consentToStep: SyncRules['consentToStep'] = async (_old, now) => await consentToNew(now)
  const synced = (refs: Refs) => ({
    refs: new Map(Object.entries(refs)),
    heads: new Map([['.', head(MAIN, 'A')]]),
    stashes: new Set<string>(),
  })

  test('is put aside on the branch that is checked out, and on another one', async () => {
    const plan = await planSync(
      state({ [MAIN]: 'B', 'refs/heads/x': 'B' }, { '.': head(MAIN, 'B') }),
      state({ [MAIN]: 'A' }, { '.': head(MAIN, 'A') }),
      rules({ [MAIN]: 'A' }, { consentToNew, synced: synced({ [MAIN]: 'A' }) }),
    )
    expect(plan).toMatchObject({
      refs: [],
      aside: [
        { name: MAIN, id: 'B', reason: 'consent', paths: ['libs/new'] },
        { name: 'refs/heads/x', id: 'B', reason: 'consent', paths: ['libs/new'] },
      ],
      worktrees: [],
    })
  })

  test('is asked for the step of the branch that the host has checked out, and for no other', async () => {
    const asked: unknown[] = []
    const refs = { [MAIN]: 'A', 'refs/heads/x': 'A' }
    await planSync(
      state({ [MAIN]: 'C', 'refs/heads/x': 'D', 'refs/heads/new': 'A' }, { '.': head(MAIN, 'C') }),
      state(refs, { '.': head(MAIN, 'A') }),
      rules(refs, {
        consentToStep: async (old, now) => {
          asked.push([old, now])
          return []
        },
      }),
    )
    expect(asked).toEqual([['A', 'C']])
  })

  test.each([
    ['a switch to a branch that crossed before', head('refs/heads/x', 'B'), 'refs/heads/x'],
    ['a detached HEAD', head(undefined, 'B'), 'refs/heads/HEAD'],
  ])('does not reach HEAD and index by %s', async (_how, now, name) => {
    const refs = { [MAIN]: 'A', 'refs/heads/x': 'B' }
    const plan = await planSync(
      state(refs, { '.': now }),
      state(refs, { '.': head(MAIN, 'A') }),
      rules(refs, { consentToStep, synced: synced(refs) }),
    )
    expect(plan.worktrees).toEqual([])
    expect(plan.aside).toEqual([{ name, id: 'B', reason: 'consent', paths: ['libs/new'] }])
  })
})

test('stashes that are not there are stored, oldest first', async () => {
  const plan = await planSync(state({}, {}, ['D', 'C', 'A']), state({}, {}, ['A']), rules({}))
  expect(plan.stashes).toEqual(['C', 'D'])
})

describe('any three states', () => {
  const NAMES = ['refs/heads/a', 'refs/heads/b', 'refs/tags/t', 'refs/notes/n', 'refs/remotes/o/a']
  const refs = fc.dictionary(fc.constantFrom(...NAMES), fc.constantFrom(...Object.keys(PARENTS)))
  const heads = fc.record({
    branch: fc.constantFrom(undefined, 'refs/heads/a', 'refs/heads/b', 'refs/heads/unborn'),
    detached: fc.constantFrom('A', 'B', 'C'),
    isBusy: fc.boolean(),
  })
  const repository = fc.tuple(refs, heads).map(([some, { branch, detached, isBusy }]) =>
    state(some, {
      '.': head(branch, branch === undefined ? detached : some[branch], { isBusy, isOpen: isBusy }),
    }),
  )
  const synced = fc.tuple(refs, heads).map(([some, { branch, detached }]) => ({
    refs: new Map(Object.entries(some)),
    heads: new Map([['.', head(branch, branch === undefined ? detached : some[branch])]]),
    stashes: new Set<string>(),
  }))

  test('lose nothing: a value is kept, contained in the new one, put aside, or was the agreed one', () =>
    fc.assert(
      fc.asyncProperty(repository, repository, synced, async (here, there, agreed) => {
        const some = rules({}, { synced: agreed })
        const plan = await planSync(here, there, some)
        const after = new Map(there.refs)
        for (const { name, old, new: id } of plan.refs) {
          expect(after.get(name)).toBe(old as string)
          after.set(name, id)
        }
        for (const [name, id] of there.refs) {
          const now = after.get(name) ?? ''
          expect(now === id || contains(now, id) || agreed.refs.get(name) === id).toBe(true)
          if (name.startsWith('refs/tags/')) expect(now).toBe(id)
        }
        for (const [name, id] of here.refs) {
          if (!some.crosses.test(name)) {
            expect(after.get(name)).toBe(there.refs.get(name) as string)
            continue
          }
          const isKnown =
            contains(after.get(name) ?? '', id) ||
            plan.aside.some(one => one.name === name && one.id === id) ||
            agreed.refs.get(name) === id
          // A branch that went back to an older commit has nothing that is not there.
          const isOlder = [...after.values()].some(other => contains(other, id))
          expect(isKnown || isOlder || plan.waits).toBe(true)
        }
      }),
      { numRuns: 2000 },
    ))

  test('are planned once: after the plan is carried out, nothing is left to move', () =>
    fc.assert(
      fc.asyncProperty(repository, repository, synced, async (here, there, agreed) => {
        const rulesFor = ({ refs: some }: RepositoryState): SyncRules =>
          rules({}, { synced: agreed, hasCommit: async id => isIn(some, id) })
        const plan = await planSync(here, there, rulesFor(there))
        const after = new Map(there.refs)
        for (const { name, new: id } of plan.refs) after.set(name, id)
        let [now] = [there.heads.get('.') as Head]
        for (const { head } of plan.worktrees) now = head ?? now
        const commit = now.branch === undefined ? now.commit : after.get(now.branch)
        const moved = { ...there, refs: after, heads: new Map([['.', { ...now, commit }]]) }
        const again = await planSync(
          here,
          { ...moved, heads: restoreBusy(moved.heads, there) },
          rulesFor(moved),
        )
        expect([again.refs, again.worktrees]).toEqual([[], []])
        // A branch that went back may have left HEAD's commit: the next sync puts that aside.
        const put = ({ aside }: typeof plan) => new Set(aside.filter(({ name }) => name !== HELD_HEAD))
        expect(put(again)).toEqual(put(plan))
      }),
      { numRuns: 2000 },
    ))

  test('move HEAD only where it is still the agreed one, and never while something is open', () =>
    fc.assert(
      fc.asyncProperty(repository, repository, synced, async (here, there, agreed) => {
        const plan = await planSync(here, there, rules({}, { synced: agreed }))
        const [from, to, was] = [here, there, agreed].map(one => one.heads.get('.'))
        if (from?.isBusy || to?.isBusy) expect(plan.worktrees).toEqual([])
        if (plan.worktrees.some(move => move.head !== undefined))
          expect([to?.branch, to?.branch ?? to?.commit]).toEqual([was?.branch, was?.branch ?? was?.commit])
        for (const { from, index } of plan.worktrees)
          expect([from, index?.old ?? to?.commit]).toEqual([to as Head, to?.commit])
      }),
      { numRuns: 1000 },
    ))

  test('move a branch that is checked out only together with its index', () =>
    fc.assert(
      fc.asyncProperty(repository, repository, synced, async (here, there, agreed) => {
        const plan = await planSync(here, there, rules({}, { synced: agreed }))
        const head = there.heads.get('.')
        for (const move of plan.refs)
          if (move.name === head?.branch)
            expect(plan.worktrees).toMatchObject([{ record: '.', from: head, ref: move }])
      }),
      { numRuns: 1000 },
    ))
})

const restoreBusy = (heads: ReadonlyMap<string, Head>, from: RepositoryState): Map<string, Head> =>
  new Map(
    [...heads].map(([record, one]) => [record, { ...one, isBusy: from.heads.get(record)?.isBusy === true }]),
  )
