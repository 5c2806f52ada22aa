import { expect, test } from 'bun:test'
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import fc from 'fast-check'
import { tryGit } from '../temporary-repository.ts'
import { TwoRepositories } from './two-repositories.ts'

/** What a step does, on the host or inside. A command that git refuses is no failure of the test. */
const STEPS = [
  'commit',
  'amend',
  'branch',
  'switch',
  'merge',
  'rebase',
  'reset',
  'tag',
  'stash',
  'delete',
  'detach',
  'note',
  'abort',
  'gc',
  'plant',
  'sync',
] as const
type Step = { readonly what: (typeof STEPS)[number]; readonly inside: boolean; readonly n: number }

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom(...STEPS, 'commit' as const, 'sync' as const),
  inside: fc.boolean(),
  n: fc.nat({ max: 2 }),
})

function commandsOf({ what, n, inside }: Step, count: number): readonly (readonly string[])[] {
  const name = `b${n}`
  switch (what) {
    case 'commit':
      return [
        ['add', '-A'],
        ['commit', '-q', '-m', `${inside ? 'inside' : 'host'} ${count}`],
      ]
    case 'amend':
      return [['commit', '-q', '--amend', '--allow-empty', '-m', `amended ${count}`]]
    case 'branch':
      return [['branch', name]]
    case 'switch':
      return [['switch', '-q', '-f', n === 0 ? 'main' : name]]
    case 'merge':
      return [['merge', '-q', '--no-edit', name]]
    case 'rebase':
      return [['rebase', '-q', name]]
    case 'reset':
      return [['reset', '-q', '--hard', 'HEAD~1']]
    case 'tag':
      return [['tag', `t${n}-${count}`]]
    case 'stash':
      return [['stash', '-q', '-u']]
    case 'delete':
      return [['branch', '-q', '-D', name]]
    case 'detach':
      return [['checkout', '-q', '-f', '--detach']]
    case 'note':
      return [['notes', 'add', '-f', '-m', `note ${count}`]]
    case 'abort':
      return [
        ['rebase', '--abort'],
        ['merge', '--abort'],
      ]
    case 'gc':
      return inside ? [] : [['gc', '-q']]
    case 'plant':
      return inside ? [['config', `pen.planted${n}`, 'x']] : []
    case 'sync':
      return []
  }
}

/** What must not come over: a hook, a link, attributes, and files with odd modes. */
function plant(own: string): void {
  for (const dir of ['hooks', 'info']) mkdirSync(`${own}/${dir}`, { recursive: true })
  writeFileSync(`${own}/hooks/post-checkout`, '#!/bin/sh\nexit 0\n', { mode: 0o755 })
  writeFileSync(`${own}/info/attributes`, '* -text\n')
  writeFileSync(`${own}/planted`, 'x', { mode: 0o4777 })
  rmSync(`${own}/refs/tags/link`, { force: true })
  symlinkSync('/etc/passwd', `${own}/refs/tags/link`)
}

/** Files that git or pen write, with the modes that they give. */
const WRITTEN =
  /^\/(?:HEAD|ORIG_HEAD|MERGE_\w+|AUTO_MERGE|REBASE_HEAD|COMMIT_EDITMSG|index|config|description|packed-refs|gc\.log|(?:info|hooks|refs|logs|objects|branches|rebase-merge|rebase-apply)(?:\/.*)?)$/

/** Every commit that a ref or HEAD names, of all kinds of refs. */
const TIPS = ['for-each-ref', '--format=%(objecttype) %(objectname) %(*objectname)']
const CROSSING = ['for-each-ref', '--format=%(objectname)', 'refs/heads', 'refs/tags', 'refs/notes']
const STASHES = ['log', '-g', '--format=%H', 'refs/stash', '--']
const HEAD = ['rev-parse', '-q', '--verify', 'HEAD']
/** git ends at a ref that is broken, such as the planted link. */
const KEPT = ['rev-list', '--exclude=refs/tags/link', '--all', '--reflog', 'HEAD']

/** What has been a tip on either side, and is there now. */
class Commits {
  readonly #two: TwoRepositories
  readonly seen = new Set<string>()

  constructor(two: TwoRepositories) {
    this.#two = two
  }

  look(): void {
    for (const args of [TIPS, STASHES, HEAD])
      for (const { stdout } of [tryGit(this.#two.host.top, args), this.#two.tryInside(args)])
        for (const id of stdout.match(/\b[0-9a-f]{40}\b/g) ?? []) this.seen.add(id)
  }

  /** Those that neither side has by a ref or a reflog. */
  lost(): readonly string[] {
    const kept = [tryGit(this.#two.host.top, KEPT), this.#two.tryInside(KEPT)].map(({ stdout }) => stdout)
    const ids = new Set(kept.join('\n').split('\n'))
    const isCommit = (id: string): boolean =>
      /commit/.test(this.#two.tryInside(['cat-file', '-t', id]).stdout)
    return [...this.seen].filter(id => !ids.has(id) && isCommit(id))
  }
}

async function run(steps: readonly Step[]): Promise<void> {
  using two = new TwoRepositories()
  two.host.commit('one')
  two.host.git('branch', 'b1')
  two.start()
  const before = two.listing()
  const commits = new Commits(two)
  let syncing: Promise<unknown> = Promise.resolve()
  for (const [count, one] of steps.entries()) {
    two.host.write(`file${one.n}`, `${count}\n`)
    if (one.what === 'plant' && one.inside) plant(two.own)
    for (const command of commandsOf(one, count))
      if (one.inside) two.tryInside(command)
      else tryGit(two.host.top, command)
    commits.look()
    if (one.what !== 'sync') continue
    await syncing
    syncing = two.sync()
    // Some syncs run while both sides go on.
    if (one.inside) await syncing
  }
  await syncing
  for (const abort of [
    ['rebase', '--abort'],
    ['merge', '--abort'],
  ]) {
    two.tryInside(abort)
    tryGit(two.host.top, abort)
  }
  commits.look()
  const inside = tipsOf(two.tryInside(CROSSING).stdout, two.tryInside(STASHES).stdout)
  const outside = tipsOf(...[CROSSING, STASHES, HEAD].map(args => tryGit(two.host.top, args).stdout))
  const { lines } = await two.sync()
  expect(lines.filter(line => /git failed|not taken over|damaged/.test(line))).toEqual([])
  expect(tryGit(two.host.top, ['fsck', '--strict', '--no-dangling'])).toMatchObject({ code: 0, stdout: '' })
  expect(commits.lost()).toEqual([])
  // Each tip that either side has at the end is on the host, by its name, in a log or below refs/pen.
  const kept = new Set(tryGit(two.host.top, KEPT).stdout.split('\n'))
  expect([inside, outside].map(tips => tips.filter(id => !kept.has(id)))).toEqual([[], []])
  for (const [path, what] of two.listing()) {
    expect([path, WRITTEN.test(path)]).toEqual([path, true])
    if (/^\/(?:hooks\/|config$|info\/(?!refs)|description)/.test(path))
      expect([path, what]).toEqual([path, before.get(path) ?? ''])
    else expect([path, what]).toEqual([path, expect.stringMatching(/^(?:directory 755|file (?:644|444) )/)])
  }
}

const tipsOf = (...texts: readonly string[]): readonly string[] =>
  texts.flatMap(text => text.match(/\b[0-9a-f]{40}\b/g) ?? [])

const seconds = Number(process.env['FUZZ_SECONDS'] ?? 8)

test(
  'random git on both sides loses no commit, and leaves only files of git and pen on the host',
  async () => {
    const until = Date.now() + seconds * 1000
    const some = async (steps: readonly Step[]): Promise<void> => {
      if (Date.now() < until) await run(steps)
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), some), {
      numRuns: 10_000,
      endOnFailure: true,
    })
  },
  (seconds + 60) * 1000,
)
