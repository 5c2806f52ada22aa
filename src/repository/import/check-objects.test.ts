import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { TemporaryRepository, tryGit } from '../../../test/temporary-repository.ts'
import { checkGitmodules, checkTrees, parseBatch, type Tree } from './check-objects.ts'

const ID = 'ab'.repeat(20)

const entry = (mode: string, name: string, id = ID): Buffer =>
  Buffer.concat([Buffer.from(`${mode} ${name}\0`, 'latin1'), Buffer.from(id, 'hex')])

const tree = (...entries: readonly Buffer[]): Tree => ({ body: Buffer.concat(entries), idLength: 20 })

const check = (...entries: readonly Buffer[]) => checkTrees(new Map([['t', tree(...entries)]])).refused

test('a directory of 200,000 new directories takes seconds, not hours', () => {
  const ids = Array.from({ length: 200_000 }, (_, i) => i.toString(16).padStart(40, '0'))
  const below = ids.map(id => [id, tree(entry('100644', 'f'))] as const)
  const top = tree(...ids.map((id, i) => entry('40000', `d${i}`, id)))
  const began = performance.now()
  expect(checkTrees(new Map([['top', top], ...below])).refused).toBeUndefined()
  expect(performance.now() - began).toBeLessThan(10_000)
})

describe('the mode of an entry', () => {
  test.each(['100644', '100755', '120000', '40000', '160000'])('%s is accepted', mode =>
    expect(check(entry(mode, 'a'))).toBeUndefined(),
  )
  test.each([
    '1160000',
    '360000',
    '100664',
    '0100644',
    '040000',
    '140000',
    '100600',
    '104755',
    '',
    ' ',
    '100644x',
    '-100644',
    '0',
    '20000',
    '60000',
    '10000',
  ])('%j is refused', mode => expect(check(entry('100644', 'a'), entry(mode, 'b'))).toContain('mode'))

  test('that is hostile text is not shown', () => {
    const why = check(entry(`\x1b[2J${'9'.repeat(300)}`, 'a'))
    expect(why).toMatch(/^tree t: an entry has the mode [0-7?]{20}$/)
  })
})

describe('the name of an entry', () => {
  test.each(['', '.', '..', '.git', '.GIT', '.Git', 'a/b', '/a'])('%j is refused', name =>
    expect(check(entry('100644', name))).toContain('name'),
  )
  test.each(['.gitx', 'git', '...', '.gitignore', '.gitmodules', '.gitattributes', 'a b', 'é', '\xff', '-x'])(
    '%j is accepted',
    name => expect(check(entry('100644', name))).toBeUndefined(),
  )
  test('of more than 255 bytes is refused', () => {
    expect(check(entry('100644', 'a'.repeat(255)))).toBeUndefined()
    expect(check(entry('100644', 'a'.repeat(256)))).toContain('256')
  })

  test.each(['.gitmodules', '.gitattributes', '.gitignore', '.GitModules', '.GITATTRIBUTES'])(
    '%s may be a file and not a link',
    name => {
      expect(check(entry('120000', name))).toContain('is a link')
      expect(check(entry('100644', name))).toBeUndefined()
      expect(check(entry('120000', `${name}x`))).toBeUndefined()
    },
  )
})

test('files named .gitmodules are reported, once each, in any spelling', () => {
  const other = 'cd'.repeat(20)
  const trees = new Map([
    ['a', tree(entry('100644', '.gitmodules'), entry('100644', 'x'))],
    ['b', tree(entry('100644', '.gitmodules'), entry('100644', '.GITMODULES', other))],
  ])
  expect(checkTrees(trees)).toEqual({ refused: undefined, gitmodules: [ID, other] })
})

describe('a tree that is cut off', () => {
  test('is refused at every length but that of whole entries', () => {
    const whole = [entry('100644', 'a'), entry('40000', 'b'), entry('120000', 'c d')]
    const { body } = tree(...whole)
    const ends = new Set([0, 29, 57, body.length])
    for (let length = 0; length <= body.length; length++) {
      const { refused } = checkTrees(new Map([['t', { body: body.subarray(0, length), idLength: 20 }]]))
      expect([length, refused === undefined]).toEqual([length, ends.has(length)])
    }
  })

  test('is refused when its ids have another length', () => {
    const { body } = tree(entry('100644', 'a'))
    expect(checkTrees(new Map([['t', { body, idLength: 32 }]])).refused).toContain('cut off')
    const long = Buffer.concat([Buffer.from('100644 a\0'), Buffer.alloc(32, 1)])
    expect(checkTrees(new Map([['t', { body: long, idLength: 32 }]])).refused).toBeUndefined()
  })
})

describe('trees', () => {
  const id = (n: number): string => n.toString(16).padStart(40, '0')
  const chain = (length: number, names: readonly string[]): Map<string, Tree> =>
    new Map(
      Array.from({ length }, (_, i) => [
        id(i),
        tree(...names.map(name => (i === 0 ? entry('100644', name) : entry('40000', name, id(i - 1))))),
      ]),
    )

  test('of 1,024 levels are accepted; deeper ones, also of 30,000 levels, are refused', () => {
    expect(checkTrees(chain(1024, ['d'])).refused).toBeUndefined()
    expect(checkTrees(chain(1025, ['d'])).refused).toContain('deep')
    expect(checkTrees(chain(30_000, ['d'])).refused).toContain('deep')
    // The deepest first, so that nothing is known when the search begins.
    expect(checkTrees(new Map([...chain(30_000, ['d'])].reverse())).refused).toContain('deep')
  })

  test('that name more than two million paths by a few objects are refused', () => {
    expect(checkTrees(chain(19, ['a', 'b'])).refused).toBeUndefined()
    expect(checkTrees(chain(40, ['a', 'b'])).refused).toContain('paths')
    expect(checkTrees(chain(1000, ['a', 'b', 'c'])).refused).toContain('paths')
  })

  test('with many entries are accepted', () => {
    const entries = Array.from({ length: 50_000 }, (_, i) => entry('100644', `f${i}`))
    expect(check(...entries)).toBeUndefined()
  })

  test('that the host has count as one path', () => {
    const entries = Array.from({ length: 100 }, (_, i) => entry('40000', `d${i}`, id(1000 + i)))
    expect(check(...entries)).toBeUndefined()
  })
})

describe('fuzzed trees', () => {
  test('never throw, and an accepted one has only the five modes', () => {
    const bytes = fc.uint8Array({ maxLength: 200 })
    const entries = fc.array(
      fc.tuple(
        fc.oneof(fc.constantFrom('100644', '40000', '160000', '1160000'), fc.string({ maxLength: 8 })),
        fc.oneof(fc.constantFrom('.git', '..', 'a', '.gitmodules'), fc.string({ maxLength: 8 })),
      ),
    )
    fc.assert(
      fc.property(fc.oneof(bytes, entries), input => {
        const body = isBytes(input)
          ? Buffer.from(input)
          : Buffer.concat(input.map(([mode, name]) => entry(mode, name)))
        const { refused } = checkTrees(new Map([['t', { body, idLength: 20 }]]))
        if (refused !== undefined) return
        // Read again by other means: an expression that knows the five modes alone.
        const text = body.toString('latin1')
        expect(text).toMatch(/^(?:(?:100644|100755|120000|40000|160000) [^\0/]+\0[\s\S]{20})*$/)
      }),
      { numRuns: 3000 },
    )
  })

  test('git itself and pen read the same entries', () => {
    using repository = new TemporaryRepository()
    const blob = tryGit(repository.top, ['hash-object', '-w', '--stdin'], { input: 'x' }).stdout.trim()
    const body = tree(entry('100644', '.gitmodules', blob), entry('100755', 'b c', blob)).body
    const hash = tryGit(repository.top, ['hash-object', '-t', 'tree', '-w', '--stdin'], { input: body })
    const listed = repository.git('ls-tree', hash.stdout.trim())
    expect(listed).toBe(`100644 blob ${blob}\t.gitmodules\n100755 blob ${blob}\tb c`)
    expect(checkTrees(new Map([['t', { body, idLength: 20 }]])).gitmodules).toEqual([blob])
  })
})

describe('.gitmodules', () => {
  const module = (url: string): string => `[submodule "a"]\n\tpath = a\n\turl = ${url}\n`
  test.each([
    'https://git.example.com/a.git',
    'git@git.example.com:a/b.git',
    'ssh://git@[2001:db8::1]:22/a',
    '../a.git',
    './a',
    '/srv/git/a',
    'C:/a',
  ])('with the URL %s is accepted', url => expect(checkGitmodules(module(url))).toBeUndefined())

  test.each([
    ['ext', module('ext::sh -c evil')],
    ['fd', module('fd::17')],
    ['any helper', module('persistent-https::x')],
    ['quotes', module('"ext::sh -c evil"')],
    ['quotes in the middle', module('e"x"t::sh')],
    ['upper case of the key', '[submodule "a"]\nURL = ext::sh\n'],
    ['one line', '[submodule "a"] url = ext::sh -c evil\n'],
    ['no blanks', '[submodule "a"]url=ext::sh\n'],
    ['a continued line', '[submodule "a"]\nurl = \\\next::sh -c evil\n'],
    ['an escape', '[submodule "a"]\nurl = "\\text::sh"\n'],
    ['CRLF', '[submodule "a"]\r\nurl = ext::sh\r\n'],
    ['a later value', `${module('https://git.example.com/a')}${module('ext::sh')}`],
    ['text that git cannot read', '[submodule "a"\nurl = x\n'],
  ])('with a helper program is refused: %s', (_how, text) => expect(checkGitmodules(text)).toBeString())
})

describe('the answers of cat-file', () => {
  test('are objects with any bytes', () => {
    const body = Buffer.from('a\n\0b 40 \n')
    const answer = Buffer.concat([
      Buffer.from(`${ID} tree ${body.length}\n`),
      body,
      Buffer.from(`\n${ID} tree 0\n\n`),
    ])
    expect(parseBatch(answer)).toEqual([
      { id: ID, body },
      { id: ID, body: Buffer.alloc(0) },
    ])
  })

  test.each([`${ID} missing\n`, `${ID} tree 5\nabc`, `${ID} tree x\n`, 'x', `${ID} tree -1\n`])(
    'in another form are an error: %j',
    text => expect(() => parseBatch(Buffer.from(text))).toThrow('another form'),
  )
})

const isBytes = (value: unknown): value is Uint8Array => value instanceof Uint8Array
