import { expect, test } from 'bun:test'
import { existsSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
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
  'prune',
  'bisect',
  'stop',
  'stage',
  'worktree',
  'plant',
  'sync',
] as const
type Step = { readonly what: (typeof STEPS)[number]; readonly inside: boolean; readonly n: number }

const step: fc.Arbitrary<Step> = fc.record({
  what: fc.constantFrom(...STEPS, 'commit' as const, 'sync' as const),
  inside: fc.boolean(),
  n: fc.nat({ max: 2 }),
})

const ABORT = [
  ['rebase', '--abort'],
  ['rebase', '--quit'],
  ['merge', '--abort'],
  ['bisect', 'reset', 'HEAD'],
]

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
      return ABORT
    case 'gc':
      return [['gc', '-q']]
    case 'prune':
      return [['gc', '-q', '--prune=now']]
    case 'bisect':
      return [['bisect', 'start', 'HEAD', 'HEAD~1']]
    case 'stop':
      return [['-c', 'sequence.editor=sed -i 1ibreak', 'rebase', '-q', '-i', 'HEAD~1']]
    case 'stage':
      return [['add', '-A']]
    case 'worktree':
      return inside ? [['worktree', 'add', '-q', '--detach', `../made${n}`]] : []
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

/** A commit without a branch, in a worktree that was made inside. */
function commitInWorktree(two: TwoRepositories, n: number): void {
  const at = { record: `worktrees/made${n}`, workTree: `${two.host.base}/made${n}` }
  if (existsSync(at.workTree)) two.tryInside(['commit', '-q', '--allow-empty', '-m', 'in a worktree'], at)
}

/** Files that git or pen write, with the modes that they give. */
const WRITTEN =
  /^\/(?:HEAD|ORIG_HEAD|MERGE_\w+|BISECT_\w+|AUTO_MERGE|REBASE_HEAD|COMMIT_EDITMSG|index|config|description|packed-refs|gc\.log|(?:info|hooks|refs|logs|objects|branches|rebase-merge|rebase-apply)(?:\/.*)?)$/

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
    return [...this.seen].filter(id => !ids.has(id) && !this.#isOther(id))
  }

  /** `refs/notes` and tags may name a file. What is not there at all is lost. */
  #isOther(id: string): boolean {
    return /blob|tree/.test(this.#two.tryInside(['cat-file', '-t', id]).stdout)
  }
}

async function run(steps: readonly Step[], isUnborn: boolean): Promise<void> {
  using two = new TwoRepositories()
  if (!isUnborn) two.host.commit('one')
  if (!isUnborn) two.host.git('branch', 'b1')
  two.start()
  const before = two.listing()
  const commits = new Commits(two)
  let syncing: Promise<unknown> = Promise.resolve()
  for (const [count, one] of steps.entries()) {
    two.host.write(`file${one.n}`, `${count}\n`)
    if (one.what === 'plant' && one.inside) plant(two.own)
    if (one.what === 'worktree' && one.inside) commitInWorktree(two, one.n)
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
  for (const abort of ABORT) {
    two.tryInside(abort)
    tryGit(two.host.top, abort)
  }
  commits.look()
  const inside = tipsOf(two.tryInside(CROSSING).stdout, two.tryInside(STASHES).stdout)
  const outside = tipsOf(...[CROSSING, STASHES, HEAD].map(args => tryGit(two.host.top, args).stdout))
  const staged = two.tryInside(['ls-files', '--stage']).stdout.match(/\b[0-9a-f]{40}\b/g) ?? []
  const detached = [HEAD, ['rev-parse', '-q', '--verify', 'worktrees/made0/HEAD']].flatMap(args =>
    tipsOf(two.tryInside(args).stdout),
  )
  const { lines, isComplete } = await two.sync()
  tryGit(two.host.top, ['gc', '-q', '--prune=now'])
  await two.sync()
  expect(lines.filter(line => /git failed|not taken over|damaged/.test(line))).toEqual([])
  expect(tryGit(two.host.top, ['fsck', '--strict', '--no-dangling'])).toMatchObject({ code: 0, stdout: '' })
  expect(commits.lost()).toEqual([])
  // Each tip that either side has at the end is on the host, by its name, in a log or below refs/pen. Else pen says so.
  const kept = new Set(tryGit(two.host.top, KEPT).stdout.split('\n'))
  if (!isComplete) for (const id of two.tryInside(KEPT).stdout.split('\n')) kept.add(id)
  if (!isComplete) expect(lines).not.toEqual([])
  expect([inside, outside].map(tips => tips.filter(id => !kept.has(id)))).toEqual([[], []])
  // What else is in the sandbox's directory would be gone with it.
  const isThere = (id: string): boolean => tryGit(two.host.top, ['cat-file', '-e', id]).code === 0
  if (isComplete) expect([...detached, ...staged].filter(id => !isThere(id))).toEqual([])
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
    const some = async (steps: readonly Step[], isUnborn: boolean): Promise<void> => {
      if (Date.now() < until) await run(steps, isUnborn)
    }
    await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), fc.boolean(), some), {
      numRuns: 10_000,
      endOnFailure: true,
    })
  },
  (seconds + 60) * 1000,
)
