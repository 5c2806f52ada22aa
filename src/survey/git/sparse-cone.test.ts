import { expect, test } from 'bun:test'
import { TemporaryRepository } from '../../../test/temporary-repository.ts'
import { readCone } from './sparse-cone.ts'

const PATHS = ['top', 'a/one', 'a/b/one', 'a/b/c/one', 'a/bc/one', 'd*/one', 'de/one', 'e/one']

test.each([[['a/b', 'd*']], [['a']], [['a/b/c', 'e']], [[]]])('as git does it: %j', dirs => {
  using repository = new TemporaryRepository()
  for (const path of PATHS) repository.commit(path)
  repository.git('sparse-checkout', 'set', '--cone', '--skip-checks', ...dirs)
  const has = readCone(repository.shell('cat .git/info/sparse-checkout'))
  const shown = PATHS.map(path => `${has(path) ? 'H' : 'S'} ${path}`)
  expect(new Set(shown)).toEqual(new Set(repository.git('ls-files', '-t').split('\n')))
})

test('each path counts as there with other patterns, and without any', () => {
  for (const text of ['', '/*\n', '*.ts\n', '!/*/\nsrc\n']) expect(readCone(text)('a/b')).toBe(true)
})
