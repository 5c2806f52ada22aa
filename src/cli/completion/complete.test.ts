import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { DENIED_IN, deniedLine } from '../../../test/denied-line.ts'
import { temporaryProject, withHome } from '../../../test/temporary-project.ts'
import { GAP_NAMES } from '../frame/gap-names.ts'
import { VERBS } from '../frame/verbs.ts'
import { offerLines } from './candidate.ts'
import { offerFor } from './complete.ts'
import { VALUES, WORDS } from './values.ts'

const context = { table: VERBS, env: { HOME: '/h', 'BAD NAME': '1', 'X;rm': '1', TOKEN: 'secret' } }

async function completing(line: string): Promise<string[]> {
  const typed = line.split(' ')
  const lines = offerLines(await offerFor(typed, context), typed.at(-1) ?? '')
  return lines[0] === 'words' ? lines.slice(1).map(text => text.split('\t')[0] ?? '') : lines
}
const includes = async (line: string, ...values: string[]) =>
  expect([line, values.filter(value => value !== '')]).toEqual([
    line,
    (await completing(line)).filter(value => values.includes(value)),
  ])

const byText = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0)
const every = await Promise.all(Object.values(VERBS).map(async load => (await load()).verb))

describe('completion', () => {
  test('offers every verb, the first words of groups, and then the second', async () => {
    expect((await completing('')).toSorted(byText)).toEqual(
      [...new Set(Object.keys(VERBS).map(name => name.split(' ')[0] ?? ''))].toSorted(byText),
    )
    await includes('policy ', 'explain')
    expect(await completing('proxy l')).toEqual(['logs'])
    expect(await completing('--')).toEqual(['--help', '--version'])
  })

  test('offers every flag of every verb, and none that was given and may not be repeated', async () => {
    for (const { name, flags, command } of every)
      expect([name, (await completing(`${name} --`)).toSorted(byText)]).toEqual([
        name,
        [
          ...Object.keys(flags).map(flag => `--${flag}`),
          '--help',
          ...(command === undefined ? [] : ['--']),
        ].toSorted(byText),
      ])
    const again = await completing('run --offline --read x --')
    expect([again.includes('--offline'), again.includes('--read')]).toEqual([false, true])
  })

  test.each([
    ['run --profile ', ['strict', 'coding', 'dev']],
    ['run --profile=s', ['--profile=strict']],
    ['run --backend p', ['process', 'podman']],
    ['run --limit mem', ['memory=']],
    ['run --limit memory=1', ['memory=1GiB']],
    ['run --limit=cpus=4', ['--limit=cpus=4']],
    ['run --env ', ['HOME', 'TOKEN']],
    ['run --accept-gap names', ['names-folded']],
    ['run --read ', ['paths']],
    ['run --write=', ['paths']],
    ['policy explain ./', ['paths']],
    ['run git', ['command\t2']],
    ['run -- ', ['command\t3']],
    ['run --profile dev -- git --', ['command\t5']],
    ['run --read x git --', ['command\t4']],
    ['completion ', ['bash', 'zsh', 'fish']],
    ['config get limits.m', ['limits.memory']],
    ['help pol', ['policy']],
    ['run --nonsense=', []],
    ['run --offline=', []],
    ['nonsense ', []],
    ['constructor ', []],
    ['version x', []],
  ])('of %j is %j', async (line, expected) => {
    expect(await completing(line)).toEqual(expected)
  })

  test('a value of a variable is never shown', async () => {
    expect((await completing('run --env ')).join(' ')).not.toContain('secret')
  })

  test('knows every placeholder and every argument of a verb', () => {
    const values = every.flatMap(({ flags }) =>
      Object.values(flags).flatMap(spec =>
        spec.kind === 'string' || (spec.kind === 'list' && spec.known === undefined) ? [spec.value] : [],
      ),
    )
    expect([...new Set(values)].filter(value => !Object.hasOwn(VALUES, value))).toEqual([])
    const positionals = every.flatMap(({ name, positionals: words }) =>
      Object.keys(words).map(word => `${name} ${word}`),
    )
    expect(positionals.filter(word => !Object.hasOwn(WORDS, word))).toEqual([])
  })

  test('knows every gap that a machine can have', async () => {
    const source = readFileSync(join(import.meta.dir, '../../plan/gaps.ts'), 'utf8')
    const written = [...source.matchAll(/\bgap\(\s*'([a-z-]+)'/g)].map(([, name = '']) => name)
    const limits = await completing('run --limit ')
    const unlimited = limits.map(limit => `no-limit-${limit.replace('=', '')}`)
    // The launch finds the last one, when the kernel rejects the packet filter rules.
    const all = [...written, ...unlimited, 'refusals-unrecorded']
    expect([...new Set(all)].toSorted(byText)).toEqual(GAP_NAMES)
  })
})

describe('hosts that are offered', () => {
  const within = async (records: readonly object[], work: () => Promise<void>) => {
    using project = temporaryProject()
    project.writeLive(
      'config.json',
      '{"version":1,"network":{"http":["kept.example:443","$(x).example:1"],"deny":["no.example:443"]}}',
    )
    project.writeLive(DENIED_IN, `${records.map(deniedLine).join('\n')}\n`)
    project.writeLive(`names/b/${DENIED_IN.replace('20260102', '20260103')}`, '')
    const before = process.cwd()
    process.chdir(project.workspace)
    try {
      await withHome(project.home, work)
    } finally {
      process.chdir(before)
    }
  }

  test('are recent refusals, newest first, each once, and only those that pen allow can allow', async () => {
    await within(
      [
        { name: 'one.example' },
        { name: 'two.example', port: 22 },
        { name: 'one.example' },
        { name: 'denied.example', fix: 'pen forget denied.example:443' },
        { name: 'allowed.example', kind: 'connection-allowed', verdict: 'allow' },
        { address: '192.0.2.1', name: undefined },
      ],
      async () => {
        expect(await completing('allow ')).toEqual(['one.example:443', 'two.example:22'])
        expect(await completing('allow tw')).toEqual(['two.example:22'])
        expect(await completing('run --allow one.example:')).toEqual(['one.example:443'])
        expect(await completing('deny al')).toEqual(['allowed.example:443'])
        expect(await completing('forget ')).toEqual(['kept.example:443', 'no.example:443'])
        expect(await completing('logs --run ')).toEqual(['20260102-030405-1a2b3c'])
        expect(await completing('logs --name b --run ')).toEqual(['20260103-030405-1a2b3c'])
      },
    )
  })

  test('are names in canonical spelling; other text of a record never reaches a shell', async () => {
    const hostile = [
      '$(touch x).example',
      '`id`',
      'a;b',
      'a b',
      'a\nb.example',
      '--flag',
      'a\tb',
      "a'b",
      '*.example',
      'UPPER.example',
      '-x.example',
      'xn--\u0000',
      '\u001b[2J',
      'a&b',
      '../../x',
    ]
    await within(
      [
        ...hostile.map(name => ({ name })),
        { name: 'fine.example', port: '443;id' },
        { name: 'fine.example' },
        { name: 7 },
      ],
      async () => expect(await completing('allow ')).toEqual(['fine.example:443']),
    )
  })
})

test('only plain words are offered', () => {
  const values = [
    'a$b',
    'a`b',
    'a b',
    "a'b",
    'a"b',
    'a;b',
    'a|b',
    'a\\b',
    'a*b',
    '',
    'a\nb',
    '~',
    'a(b',
    'ok-1.x:2=3',
  ]
  const offer = { is: 'words', candidates: values.map(value => ({ value, about: 'x\ty\nz' })) } as const
  expect(offerLines(offer, '')).toEqual(['words', 'ok-1.x:2=3\tx\\u0009y\\u000az'])
})
