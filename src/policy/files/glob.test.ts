import { describe, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Stopwatch } from '../../../test/stopwatch.ts'
import { type Glob, globMatches, nameMatches, parseGlob } from './glob.ts'

function glob(text: string): Glob {
  const parsed = parseGlob(text)
  if (!parsed.ok) throw new Error(`${text}: ${parsed.why}`)
  return parsed.value
}

describe('the grammar', () => {
  test.each([
    '.env*',
    'secrets/',
    '**/.env',
    '**/*.pem',
    'a/b?/c',
    'conf/*/key',
    'ö.txt',
    '-x',
    'a b',
    '.env.*',
  ])('%p is a glob', text => expect(parseGlob(text).ok).toBe(true))
  test.each([
    ['', 'empty'],
    ['/', 'absolute'],
    ['/etc/passwd', 'absolute'],
    ['~/x', '~'],
    ['a//b', 'empty component'],
    ['a///', 'empty component'],
    ['**/', 'empty component'],
    ['../x', '..'],
    ['a/../b', '..'],
    ['./a', '.'],
    ['a/**/b', '**'],
    ['a/**', '**'],
    ['**', '**'],
    ['a**b', '**'],
    ['*', 'everything'],
    ['*/', 'everything'],
    ['**/*', 'everything'],
    ['*/*', 'everything'],
    ['[ab]', '['],
    ['{a,b}', '{'],
    ['!a', '!'],
    ['a\\b', 'backslash'],
    ['a\nb', 'control'],
    ['a\u0000b', 'control'],
    ['a\u2028b', 'control'],
    ['\ud800', 'Unicode'],
    ['x'.repeat(300), '255'],
    ['x/'.repeat(600), '1024'],
  ])('%p is refused because of %p', (text, why) => {
    const parsed = parseGlob(text)
    expect(parsed.ok ? 'accepted' : parsed.why).toContain(why)
  })
})

describe('matching', () => {
  test.each([
    ['.env*', '.env', true],
    ['.env*', '.env.local', true],
    ['.env*', '.envrc', true],
    ['.env*', '.env/inner/file', true],
    ['.env*', 'sub/.env', false],
    ['.env*', 'x.env', false],
    ['**/.env', '.env', true],
    ['**/.env', 'a/b/.env', true],
    ['**/.env', 'a/.env/b', true],
    ['**/a/b', 'x/a/b/y', true],
    ['**/a/b', 'x/a/c/b', false],
    ['secrets/', 'secrets/key', true],
    ['secrets/', 'secretsX/key', false],
    ['a/b', 'a', false],
    ['a/b', 'a/b/c', true],
    ['a?c', 'abc', true],
    ['a?c', 'ac', false],
    ['conf/*/key', 'conf/x/key', true],
    ['conf/*/key', 'conf/x/y/key', false],
  ])('%p on %p is %p', (text, path, wanted) => expect(globMatches(glob(text), path)).toBe(wanted))

  test('a trailing slash also covers a name whose kind is unknown', () => {
    expect(globMatches(glob('secrets/'), 'secrets')).toBe(true)
  })

  test('case counts unless the file system folds it', () => {
    expect(globMatches(glob('.env*'), '.ENV')).toBe(false)
    expect(nameMatches('.env*', '.ENV', true)).toBe(true)
  })
})

const name = fc
  .string({ unit: fc.constantFrom('a', 'b', '.', 'é', '-'), minLength: 1, maxLength: 8 })
  .filter(n => n !== '.' && n !== '..')
const pattern = fc.string({ unit: fc.constantFrom('a', 'b', '.', '*', '?'), minLength: 1, maxLength: 8 })

describe('properties', () => {
  test('a component matches exactly as the equal regular expression says', () => {
    fc.assert(
      fc.property(pattern, name, (p, n) => {
        const source = p.replace(/[.]/g, '\\.').replace(/\*+/g, '.*').replace(/\?/g, '.')
        return nameMatches(p, n) === new RegExp(`^${source}$`, 's').test(n)
      }),
      { numRuns: 2000 },
    )
  })

  test('what a glob matches stays matched in every deeper path', () => {
    fc.assert(
      fc.property(pattern, name, name, (p, a, b) => {
        const parsed = parseGlob(p)
        return !parsed.ok || !globMatches(parsed.value, a) || globMatches(parsed.value, `${a}/${b}`)
      }),
    )
  })

  test('**/ widens: whatever the anchored glob matches, the floating one matches at every depth', () => {
    fc.assert(
      fc.property(pattern, name, fc.array(name, { maxLength: 3 }), (p, a, above) => {
        const anchored = parseGlob(p)
        const floating = parseGlob(`**/${p}`)
        if (!anchored.ok || !floating.ok) return anchored.ok === floating.ok
        return !globMatches(anchored.value, a) || globMatches(floating.value, [...above, a].join('/'))
      }),
    )
  })

  test('a literal name matches itself alone', () => {
    fc.assert(fc.property(name, name, (a, b) => globMatches(glob(a), b) === (a === b)))
  })

  test('no text makes the parser throw, and nothing it accepts has an empty or dotted component', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 40 }), text => {
        const parsed = parseGlob(text)
        return !parsed.ok || parsed.value.components.every(c => c !== '' && c !== '.' && c !== '..')
      }),
    )
  })

  test('a pattern made to backtrack costs little', () => {
    const watch = new Stopwatch()
    nameMatches(`${'*a'.repeat(120)}b`, 'a'.repeat(255))
    expect(watch.ms).toBeLessThan(50)
  })
})
