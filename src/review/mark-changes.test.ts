import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { Accepted } from './accepted.ts'
import type { Change } from './change.ts'
import { chooseChanges, namedPaths } from './choose-changes.ts'
import type { Entry } from './entry.ts'
import { foldGenerated } from './fold-generated.ts'
import { Guard, markChanges } from './mark-changes.ts'

const MADE = 1_000_000
const entry = (of: Partial<Entry> = {}): Entry => ({
  type: 'file',
  mode: 0o644,
  size: 1,
  content: 'x',
  mtimeNs: 0n,
  ctimeNs: 0n,
  ino: 1n,
  uid: 1,
  gid: 1,
  ...of,
})
const added = (path: string, of?: Partial<Entry>): Change => ({
  path,
  kind: 'added',
  before: undefined,
  after: entry(of),
})
const changed = (path: string, ctimeMs: number, ino = 1n): Change => ({
  path,
  kind: 'changed',
  before: entry({ ctimeNs: BigInt(ctimeMs) * 1_000_000n, ino }),
  after: entry(),
})
const options = {
  workspace: '/p',
  made: MADE,
  accepted: new Accepted('/nonexistent'),
  mayWrite: (path: string) => !path.startsWith('/p/.env'),
  protectedPaths: ['/p/.vscode', '/p/.npmrc', '/p/.claude/settings.json', '/elsewhere'],
}
const marked = (...changes: Change[]): readonly Change[] => markChanges(changes, options)
const guard = new Guard(options)
const applied = (changes: readonly Change[], ...named: string[]): string[] =>
  chooseChanges(changes, named, guard, false).chosen.map(({ path }) => path)

test('protected paths are applied only by a name that is protected itself, in any case', () => {
  const changes = marked(
    added('.ENV.local'),
    added('.VSCode', { type: 'directory' }),
    added('.VSCode/tasks.json'),
    added('.npmrc'),
    added('.npmrc2'),
    added('.v\u017fcode/x'.replace('\u017f', '\xc5\xbf')),
    added('.claude', { type: 'link', content: 'evil' }),
    added('src/a'),
  )
  expect(applied(changes)).toEqual(['.npmrc2', 'src/a'])
  // It brings `.claude/settings.json`.
  expect(applied(changes, '.claude')).toEqual(['.claude'])
  expect(applied(changes, '.VSCode/tasks.json')).toEqual(['.VSCode', '.VSCode/tasks.json'])
  expect(applied(changes, '.npmrc', 'src')).toEqual(['.npmrc', 'src/a'])
  expect(applied(changes, '.ENV.local')).toEqual(['.ENV.local'])
})

test('a git directory of the sandbox is never applied, under any name of a case', () => {
  const changes = marked(
    added('.git'),
    added('sub/.GIT/config'),
    added('.g\xe2\x80\x8cit/hooks'),
    added('sub/.gitignore'),
    added('sub/x.git'),
    ...['HEAD', 'objects', 'refs', 'config'].map(name => added(`bare/${name}`)),
    ...['head', 'commondir', 'sub/in'].map(name => added(`other/${name}`)),
    ...['HEAD', 'refs', 'in'].map(name => added(`none/${name}`)),
  )
  expect(applied(changes)).toEqual(['none/HEAD', 'none/in', 'none/refs', 'sub/.gitignore', 'sub/x.git'])
  expect(applied(changes, '.git', 'sub/.GIT/config')).toEqual([])
})

test('also one of which the project has a part, whatever the name of the project', () => {
  const workspace = mkdtempSync(`${tmpdir()}/pen-\u9805\u76ee-`)
  for (const name of ['objects', 'refs']) mkdirSync(`${workspace}/bare/${name}`, { recursive: true })
  const changes = markChanges([added('bare/HEAD'), added('other/HEAD')], { ...options, workspace })
  expect(changes.map(({ refused }) => refused !== undefined)).toEqual([true, false])
  rmSync(workspace, { recursive: true })
})

test('a file with a newer ctime than the layer is a conflict, unless an accept put it there', () => {
  options.accepted.add('ours', { ino: 7n, ctimeNs: 2_000_000_000_000n })
  const changes = marked(
    changed('old', 900_000),
    changed('edited', 1_000_001),
    changed('ours', 2_000_000, 7n),
    changed('ours2', 2_000_000, 7n),
  )
  expect(changes.map(({ conflict }) => conflict !== undefined)).toEqual([false, true, false, true])
  expect(applied(changes)).toEqual(['old', 'ours'])
  const overwritten = chooseChanges(changes, ['edited'], guard, true).chosen
  expect(overwritten.map(({ path }) => path)).toEqual(['edited'])
})

test('what runs later and links that lead out are marked', () => {
  const link = (path: string, content: string) => added(path, { type: 'link', content })
  const changes = marked(
    added('package.json'),
    added('src/package.json'),
    added('.github/workflows/x.yml'),
    link('a/in', '../b'),
    link('a/out', '../../b'),
    link('abs', '/etc'),
    link('self', '/p/a'),
  )
  expect(changes.filter(({ attention }) => attention !== undefined).map(({ path }) => path)).toEqual([
    'package.json',
    '.github/workflows/x.yml',
    'a/out',
    'abs',
  ])
})

test('generated trees are folded, but never what needs the user’s eyes', () => {
  const many = (dir: string, more: Partial<Change> = {}) =>
    Array.from({ length: 20 }, (_, i) => ({ ...added(`${dir}/x/${i}`), ...more }))
  const changes = [
    ...many('web/node_modules'),
    { ...added('web/node_modules/y'), conflict: 'edited' },
    ...many('out', { ignored: 'out' }),
    { ...added('out/package.json'), ignored: 'out', attention: 'runs' },
  ]
  const { listed, trees } = foldGenerated(changes, [])
  expect(listed.map(({ path }) => path)).toEqual(['web/node_modules/y', 'out/package.json'])
  expect(trees.map(({ path, changes: inside }) => [path, inside.length])).toEqual([
    ['web/node_modules', 20],
    ['out', 20],
  ])
  expect(foldGenerated(changes, ['web/node_modules/x', 'out']).trees).toEqual([])
  // By their name alone: sources, and a tree with something that was there before.
  const unknown = [...many('target'), ...many('.yarn'), ...many('node_modules'), changed('node_modules/a', 0)]
  expect(foldGenerated(unknown, []).trees).toEqual([])
})

test('paths are named relative to the directory of the user, and stay in the project', () => {
  expect(namedPaths(['a', '../b/./c', 'é'], '/p/sub', '/p')).toEqual(['sub/a', 'b/c', 'sub/\xc3\xa9'])
  expect(namedPaths(['..', 'a'], '/p/sub', '/p')).toEqual([])
  expect(() => namedPaths(['../../x'], '/p/sub', '/p')).toThrow('not in the project')
})
