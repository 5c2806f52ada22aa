/** The pages are true: the files they link to exist, and the verbs they show exist or are marked as to come. */
import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { VERBS } from '../../src/cli/frame/verbs.ts'
import { list, ROOT, read, sources } from './sources.ts'

const top = ['README.md', 'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']
const pages = [...top, ...list('docs', ['.md'])]

const LINK = /\]\((?!https?:|mailto:|#)([^)#\s]+)/g
/** In code spans and blocks: `pen run …`, `./pen version`. */
const COMMAND = /(?:^|[`$ ])(?:\.\/)?pen ([a-z][a-z-]*)(?: ([a-z][a-z-]*))?/g

/** What stands in code: lines of blocks, and spans. */
function codeOf(page: string): string[] {
  let fenced = false
  return read(page)
    .split('\n')
    .flatMap(line => {
      if (line.startsWith('```')) fenced = !fenced
      return fenced ? [line] : [...line.matchAll(/`([^`]+)`/g)].map(([, span]) => span ?? '')
    })
}

/** Flags that a page gives to a verb which does not have them. What follows `--` or a pipe is another program's. */
async function unknownFlags(page: string): Promise<string[]> {
  const found: string[] = []
  for (const code of codeOf(page)) {
    const [, words] = /^(?:\$ )?(?:\.\/)?pen ([a-z].*)$/.exec(code.trim()) ?? []
    if (words === undefined) continue
    const [first = '', second = '', ...rest] = words.split(/ -- | \| | # /)[0]?.split(/\s+/) ?? []
    const name = VERBS[`${first} ${second}`] === undefined ? first : `${first} ${second}`
    const verb = (await VERBS[name]?.())?.verb
    if (verb === undefined) continue
    for (const word of [second, ...rest]) {
      const flag = /^\[?--([a-z][a-z-]*)/.exec(word)?.[1]
      if (flag !== undefined && flag !== 'help' && !Object.hasOwn(verb.flags, flag))
        found.push(`${page}: pen ${name} --${flag}`)
    }
  }
  return found
}

/** A verb that a page shows before it exists: the line or its heading says "to come". */
function unknownVerbs(page: string): string[] {
  const found: string[] = []
  let heading = ''
  let fenced = false
  for (const line of read(page).split('\n')) {
    if (line.startsWith('```')) fenced = !fenced
    if (line.startsWith('#') && !fenced) heading = line
    if (/to come/i.test(line) || /to come/i.test(heading)) continue
    const code = fenced ? [line] : [...line.matchAll(/`([^`]+)`/g)].map(([, span]) => span ?? '')
    for (const span of code)
      for (const [, first = '', second = ''] of span.matchAll(COMMAND))
        if (VERBS[first] === undefined && VERBS[`${first} ${second}`] === undefined)
          found.push(`${page}: pen ${first}`)
  }
  return found
}

describe('documentation', () => {
  test('every page that a newcomer looks for is there', () => {
    expect([...top, 'LICENSE'].filter(page => !existsSync(join(ROOT, page)))).toEqual([])
  })

  test('links between pages lead to files', () => {
    const broken = pages.flatMap(page =>
      [...read(page).matchAll(LINK)]
        .map(([, target = '']) => target)
        .filter(target => !existsSync(join(ROOT, dirname(page), target)))
        .map(target => `${page} → ${target}`),
    )
    expect(broken).toEqual([])
  })

  test('verbs that a page shows exist, or are marked as to come', () => {
    // Requirements list what is still to come, row by row, and have their own test.
    expect(pages.filter(page => page !== 'docs/dev/requirements.md').flatMap(unknownVerbs)).toEqual([])
  })

  test('flags that a page shows are flags of that verb', async () => {
    const shown = pages.filter(page => page !== 'docs/dev/requirements.md')
    expect((await Promise.all(shown.map(unknownFlags))).flat()).toEqual([])
  })

  test('paths that architecture.md names exist, and it names every folder of src/', () => {
    const text = read('docs/architecture.md').replace(/```[\s\S]*?```/g, '')
    const spans = [...text.matchAll(/`([^`\s]+)`/g)].map(([, span]) => span ?? '')
    const paths = spans.filter(span => /^[a-z][a-z-]*(\/[\w.-]*)+$|^[a-z-]+\.ts$/.test(span))
    const folders = new Set(sources('src').flatMap(({ path }) => path.split('/').slice(1, -1)))
    const exists = (path: string) =>
      folders.has(path.slice(0, -1)) || [path, join('src', path)].some(at => existsSync(join(ROOT, at)))
    expect(paths.length).toBeGreaterThan(60)
    expect(paths.filter(path => !exists(path))).toEqual([])
    expect([...folders].filter(name => !text.includes(`${name}/`))).toEqual([])
  })

  test('decisions have unique numbers, in order', () => {
    const numbers = list('docs/decisions', ['.md']).map(path => Number(/(\d{4})-/.exec(path)?.[1]))
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  })
})
