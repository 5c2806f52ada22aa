import { expect, test } from 'bun:test'
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
    case 'sync':
      return []
  }
}

/** Files that git or pen write, with the modes that they give. */
const WRITTEN =
  /^\/(?:HEAD|ORIG_HEAD|MERGE_\w+|AUTO_MERGE|REBASE_HEAD|COMMIT_EDITMSG|index|config|description|packed-refs|gc\.log|(?:info|hooks|refs|logs|objects|branches|rebase-merge|rebase-apply)(?:\/.*)?)$/

async function run(steps: readonly Step[]): Promise<void> {
  using two = new TwoRepositories()
  two.host.commit('one')
  two.host.git('branch', 'b1')
  two.start()
  const config = two.listing().get('/config')
  const seen = new Set<string>()
  const note = (list: string): void => {
    for (const id of list.split('\n')) if (id !== '') seen.add(id)
  }
  const look = (): void => {
    const args = ['for-each-ref', '--format=%(objectname)', 'refs/heads']
    note(tryGit(two.host.top, args).stdout)
    note(two.tryInside(args).stdout)
  }
  for (const [count, one] of steps.entries()) {
    two.host.write(`file${one.n}`, `${count}\n`)
    for (const command of commandsOf(one, count))
      if (one.inside) two.tryInside(command)
      else tryGit(two.host.top, command)
    // Only what was seen by a sync can be asked for: a commit that was amended before it is gone inside as well.
    if (one.what !== 'sync') continue
    look()
    await two.sync()
  }
  for (const abort of [
    ['rebase', '--abort'],
    ['merge', '--abort'],
  ]) {
    two.tryInside(abort)
    tryGit(two.host.top, abort)
  }
  look()
  const { lines } = await two.sync()
  expect(lines.filter(line => /git failed|not taken over|damaged/.test(line))).toEqual([])
  expect(tryGit(two.host.top, ['fsck', '--strict', '--no-dangling'])).toMatchObject({ code: 0, stdout: '' })
  const { stdout } = tryGit(two.host.top, ['rev-list', '--all', '--reflog'])
  const kept = new Set(stdout.split('\n'))
  expect([...seen].filter(id => !kept.has(id))).toEqual([])
  for (const [path, what] of two.listing()) {
    expect([path, WRITTEN.test(path)]).toEqual([path, true])
    if (!path.startsWith('/hooks/'))
      expect([path, what]).toEqual([path, expect.stringMatching(/^(?:directory 755|file (?:644|444) )/)])
  }
  expect(two.listing().get('/config')).toBe(config as string)
}

test('random git on both sides loses no commit, and leaves only files of git and pen on the host', async () => {
  await fc.assert(fc.asyncProperty(fc.array(step, { minLength: 4, maxLength: 14 }), run), {
    numRuns: Number(process.env['PEN_RANDOM_RUNS'] ?? 12),
    endOnFailure: true,
  })
}, 240_000)
