/** docs/dev/requirements.md answers every row of the documents that pen grew from, and its answers exist. */
import { describe, expect, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { ROOT, read } from './sources.ts'

/** How many rows each document has. Rows may be added, never lost. */
const ROWS: Readonly<Record<string, number>> = {
  'pen: TODO': 35,
  'pen README': 22,
  'CLAUDE.md of the bash pen': 12,
  'Secure Agent: Implementation Checklist': 117,
  'Tool-call stability TODO': 20,
}
const CAPABILITIES = ['containers']

interface Row {
  readonly source: string
  readonly name: string
  readonly what: string
  readonly answer: string
}

const rows: Row[] = read('docs/dev/requirements.md')
  .split(/^## /m)
  .slice(1)
  .flatMap(section => {
    const [source = '', ...lines] = section.split('\n')
    return lines
      .filter(line => line.startsWith('| ') && !/^\| (row|---) /.test(line))
      .map(line => line.slice(2, -2).split(/ \| /))
      .map(([name = '', what = '', answer = '', ...more]) => {
        expect([line(source, name), more]).toEqual([line(source, name), []])
        return { source, name, what, answer }
      })
  })

function line(source: string, name: string): string {
  return `${source}, ${name}`
}
const faults = (check: (row: Row) => readonly string[]): string[] =>
  rows.flatMap(row => check(row).map(fault => `${line(row.source, row.name)}: ${fault}`))

/** A link, and the test title after it. */
const LINK = /\[[^\]]+\]\(([^)]+)\)(?: "([^"]+)")?/g

describe('requirements', () => {
  test.each(Object.entries(ROWS))('%s has all of its %d rows', (source, count) => {
    expect(rows.filter(row => row.source === source).length).toBeGreaterThanOrEqual(count)
  })

  test('come from the counted documents, and no row is there twice', () => {
    expect(rows.filter(row => ROWS[row.source] === undefined)).toEqual([])
    const names = rows.map(row => line(row.source, row.name))
    expect(names.filter((name, i) => names.indexOf(name) !== i)).toEqual([])
  })

  test('each states a requirement and an answer: a file, or a capability that is to come', () => {
    expect(
      faults(({ what, answer }) => {
        const links = [...answer.matchAll(LINK)]
        const awaited = [...answer.matchAll(/to come: ([a-z-]+)/g)].map(([, name = '']) => name)
        const unknown = awaited
          .filter(name => !CAPABILITIES.includes(name))
          .map(name => `no capability ${name}`)
        const silent = what === '' || links.length + awaited.length === 0 ? ['no answer'] : []
        return [...unknown, ...silent]
      }),
    ).toEqual([])
  })

  test('every named file exists, and has the named test', () => {
    expect(
      faults(({ answer }) =>
        [...answer.matchAll(LINK)].flatMap(([, target = '', title]) => {
          const path = join('docs/dev', target)
          if (!existsSync(join(ROOT, path))) return [`${path} is not there`]
          return title === undefined || read(path).includes(title) ? [] : [`${path} has no test "${title}"`]
        }),
      ),
    ).toEqual([])
  })

  test('an answer contains nothing but links and capabilities', () => {
    expect(
      faults(({ answer }) => {
        const rest = answer
          .replace(LINK, '')
          .replace(/to come: [a-z-]+/g, '')
          .replace(/[;\s]/g, '')
        return rest === '' ? [] : [rest]
      }),
    ).toEqual([])
  })
})
