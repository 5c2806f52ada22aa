import { describe, expect, test } from 'bun:test'
import { judgeName } from './judge-name.ts'

const MAIN = 'refs/heads/main'

describe('the name of a new ref', () => {
  const there = new Map(
    [MAIN, 'refs/heads/feature/a', 'refs/tags/v1', 'refs/remotes/origin/dev', 'refs/stash'].map(name => [
      name,
      'A',
    ]),
  )
  test.each([
    'refs/heads/fix',
    'refs/heads/feature/b',
    'refs/heads/user/issue-12_x+y',
    'refs/heads/dependabot/npm_and_yarn/a-1.2.3',
    'refs/heads/größe',
    'refs/heads/日本',
    'refs/tags/v2.0.0-rc.1',
    'refs/heads/fix-#12',
    'refs/heads/a@b',
    'refs/heads/deadbee-fix',
    'refs/notes/commits',
  ])('%s is accepted', name => expect(judgeName(name, there)).toBeUndefined())

  test.each([
    'refs/heads/-x',
    'refs/heads/a/-x',
    'refs/heads/--upload-pack=evil',
    'refs/heads/HEAD',
    'refs/heads/FETCH_HEAD',
    'refs/heads/ORIG_HEAD',
    'refs/heads/@',
    'refs/heads/deadbeef',
    `refs/heads/${'a'.repeat(40)}`,
    `refs/tags/${'0'.repeat(64)}`,
    'refs/heads/v1-3-gdeadbee',
    'refs/heads/refs/heads/main',
    'refs/heads/heads/main',
    'refs/heads/tags/v1',
    'refs/heads/remotes/origin/dev',
    'refs/heads/stash',
    'refs/heads/v1',
    'refs/tags/main',
    'refs/heads/origin/dev',
    'refs/heads/origin',
    'refs/heads/MAIN',
    'refs/heads/Feature/a',
    'refs/heads/$(evil)',
    'refs/heads/a;evil',
    'refs/heads/a|b',
    'refs/heads/`x`',
    "refs/heads/it's",
    'refs/heads/a\u202eb',
    'refs/heads/a\u200bb',
    'refs/heads/e\u0301',
    'refs/heads/\x1b[2J',
    'refs/heads/a\ufffd',
    `refs/heads/${'a'.repeat(201)}`,
  ])('%j is refused', name => expect(judgeName(name, there)).toBeString())
})
