import { expect, test } from 'bun:test'
import { TestLayer } from '../../test/review-layer.ts'
import { tryGit } from '../../test/temporary-repository.ts'
import { Accepted } from './accepted.ts'
import { markDeleted } from './mark-deleted.ts'
import { OpenDirectories } from './open-directories.ts'

/** Paths of conflicts. */
async function conflicts(layer: TestLayer): Promise<readonly string[]> {
  using directories = new OpenDirectories(layer.workspace, layer.upper, 'read')
  const { stdout } = tryGit(layer.workspace, ['rev-parse', 'HEAD'])
  const changes = layer.changes.filter(
    ({ refused, path }) => refused === undefined && !path.startsWith('.git'),
  )
  const marked = await markDeleted(changes, {
    directories,
    repository: { dir: `${layer.workspace}/.git`, record: '.' },
    base: stdout.trim(),
    empty: `${layer.base}/empty`,
    accepted: new Accepted(layer.layer),
  })
  return marked.filter(({ conflict }) => conflict !== undefined).map(({ path }) => path)
}

test('a file that the user deleted and the sandbox edited is a conflict; a new or a moved one is not', async () => {
  using layer = new TestLayer()
  layer.host('mkdir d; for f in tracked d/tracked locked untracked moved stays; do echo $f > $f; done')
  for (const args of [
    ['init', '-q'],
    ['add', 'tracked', 'd', 'locked', 'moved'],
    ['commit', '-qm', 'one'],
  ])
    expect(tryGit(layer.workspace, args).code).toBe(0)
  layer.inside(
    'for f in tracked d/tracked locked untracked stays; do echo more >> $f; done; chmod 0 locked; echo new > new',
  )
  layer.host('rm tracked d/tracked locked untracked')
  expect(await conflicts(layer)).toEqual(['d/tracked', 'locked', 'tracked', 'untracked'])
  // From now on an untracked one may be the moved file, under another name and edited.
  layer.inside('mv moved new-name; echo more >> new-name')
  expect(await conflicts(layer)).toEqual(['d/tracked', 'locked', 'tracked'])
  // Also when the old name was accepted by itself.
  layer.accept(layer.changes.filter(({ path }) => path === 'moved'))
  expect(await conflicts(layer)).toEqual(['d/tracked', 'locked', 'tracked'])
})
