import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { type Glob, parseGlob } from '../policy/files/glob.ts'
import type { Policy } from '../policy/policy.ts'
import { DeniedPlaces } from './denied-places.ts'

let ws = ''
beforeEach(() => {
  ws = realpathSync(mkdtempSync(join(tmpdir(), 'pen-denied-')))
})
afterEach(() => rmSync(ws, { recursive: true, force: true }))

function glob(text: string): Glob {
  const parsed = parseGlob(text)
  if (!parsed.ok) throw new Error(parsed.why)
  return parsed.value
}

/** Only the parts that are asked for. */
function places(globs: readonly string[], paths: readonly string[] = []): DeniedPlaces {
  const deny = [
    ...globs.map(text => ({ rule: { kind: 'glob', glob: glob(text) } })),
    ...paths.map(path => ({ rule: { kind: 'path', path } })),
  ]
  const files = { deny, read: [{ rule: { path: ws, rank: 1 } }], write: [], protect: [] }
  return new DeniedPlaces({ workspace: ws, mounts: [], files } as unknown as Policy, [ws])
}

function file(path: string): void {
  mkdirSync(dirname(`${ws}/${path}`), { recursive: true })
  writeFileSync(`${ws}/${path}`, 'x')
}

const short = (paths: Iterable<string>): string[] => [...paths].map(p => p.slice(ws.length + 1)).sort(byText)
const byText = (a: string, b: string): number => (a < b ? -1 : 1)

test('a denied name is in a named directory when no pattern and not the top leads to it', () => {
  mkdirSync(`${ws}/a/b`, { recursive: true })
  mkdirSync(`${ws}/p/q`, { recursive: true })
  const denied = places(['a/b/*.key', 'p/*/key', '.env'])
  denied.survey()
  expect([denied.isInNamed(`${ws}/a/b`, 'x.key'), denied.isInNamed(`${ws}/a/b`, 'x')]).toEqual([true, false])
  for (const [dir, name] of [
    ['/a', 'b'],
    ['/p/q', 'key'],
    ['', '.env'],
  ] as const)
    expect([dir, name, denied.isInNamed(ws + dir, name)]).toEqual([dir, name, false])
})

describe('a survey', () => {
  test('finds what is denied and exists, and names the directories that decide', () => {
    for (const path of ['.env', '.env.local', 'env', 'secrets/key', 'a/b/key', 'a/b/other']) file(path)
    const denied = places(['.env*', 'secrets/', 'a/*/key'])
    expect(short(denied.survey())).toEqual(['.env', '.env.local', 'a/b/key', 'secrets'])
    expect([...denied.directories.keys()].sort(byText)).toEqual([ws, `${ws}/a`, `${ws}/a/b`])
  })

  test('leaves a file alone where only a directory is denied', () => {
    file('secrets')
    expect(short(places(['secrets/']).survey())).toEqual([])
  })

  test('covers what a link leads to inside, and nothing outside or above', () => {
    file('config/prod')
    symlinkSync('config/prod', `${ws}/.env`)
    symlinkSync('/etc/passwd', `${ws}/.env.out`)
    symlinkSync('.', `${ws}/.env.top`)
    symlinkSync('..', `${ws}/.env.up`)
    expect(short(places(['.env*']).survey())).toEqual(['config/prod'])
  })

  test('P3 watches the path to the future target of a link, after everything else, and nothing outside', () => {
    mkdirSync(`${ws}/config/old`, { recursive: true })
    symlinkSync('config/new/prod', `${ws}/.env`)
    symlinkSync('/absent/prod', `${ws}/.env.out`)
    symlinkSync('.env.round', `${ws}/.env.round`)
    const denied = places(['.env*', 'config/old/key'])
    expect(short(denied.survey())).toEqual(['config/new/prod'])
    expect([...denied.directories.keys()]).toEqual([ws, `${ws}/config`, `${ws}/config/old`])
    expect([denied.judge(`${ws}/config`, 'new'), denied.judge(`${ws}/config`, 'other')]).toEqual([
      'survey',
      'nothing',
    ])
    file('config/new/prod')
    expect(short(denied.survey())).toEqual(['config/new/prod'])
  })

  test('P3 finds a denied path behind a link on the way, and watches the path to it before it is there', () => {
    mkdirSync(`${ws}/real`)
    symlinkSync('real', `${ws}/conf`)
    const denied = places(['conf/*/key'], [`${ws}/conf/deep/key`])
    expect(short(denied.survey())).toEqual(['real/deep/key'])
    expect(denied.judge(`${ws}/real`, 'deep')).toBe('survey')
    file('real/deep/key')
    expect(short(denied.survey())).toEqual(['real/deep/key'])
    expect([...denied.directories.keys()].sort(byText)).toEqual([ws, `${ws}/real/deep`])
  })

  test('P3 watches each link of a chain, keeps earlier targets denied, and ends at the fifth', () => {
    for (const dir of ['sub', 'a', 'b']) mkdirSync(`${ws}/${dir}`)
    symlinkSync('sub/../sub/second', `${ws}/.env`)
    const denied = places(['.env*'])
    const turn = (text: string): string[] => {
      rmSync(`${ws}/sub/second`, { force: true })
      symlinkSync(text, `${ws}/sub/second`)
      return short(denied.survey())
    }
    expect(turn('../a/1')).toEqual(['a/1'])
    expect(denied.judge(`${ws}/sub`, 'second')).toBe('survey')
    expect(turn('../b/2')).toEqual(['a/1', 'b/2'])
    expect(turn('../b/3')).toEqual(['a/1', 'b/2', 'b/3'])
    turn('../b/4')
    expect(denied.overflows).toBeUndefined()
    turn('../b/5')
    expect(denied.overflows).toContain('/.env changed too often')
  })

  test('P3 watches the links of a loop: one that changes leads elsewhere', () => {
    mkdirSync(`${ws}/sub`)
    symlinkSync('sub/second', `${ws}/.env`)
    symlinkSync('second', `${ws}/sub/second`)
    const denied = places(['.env*'])
    expect(short(denied.survey())).toEqual([])
    expect(denied.judge(`${ws}/sub`, 'second')).toBe('survey')
  })

  test('P3 a link that leads through /proc cannot be covered; one that leads to a name like it can', () => {
    file('proc/self')
    symlinkSync('proc/self', `${ws}/.env`)
    const denied = places(['.env*'])
    expect([short(denied.survey()), denied.overflows]).toEqual([['proc/self'], undefined])
    for (const text of [
      '/proc/self/cwd/x',
      '/dev/stdin',
      '/proc/1/root/x',
      '../../../../../../../../proc/thread-self',
    ]) {
      rmSync(`${ws}/proc/self`)
      symlinkSync(text, `${ws}/proc/self`)
      const turned = places(['.env*'])
      turned.survey()
      expect([text, turned.overflows]).toEqual([text, expect.stringContaining('.env leads through /proc')])
    }
  })

  test('finds a denied path that is not a glob', () => {
    file('deep/er/key')
    expect(short(places([], [`${ws}/deep/er/key`, '/elsewhere/key']).survey())).toEqual(['deep/er/key'])
  })
})

describe('a glob at any depth', () => {
  test('adds what was found anywhere, resolves links, and forgets what is gone', async () => {
    for (const path of ['a/b/.env', 'conf/prod', 'x/vault/in', 'y/vault']) file(path)
    symlinkSync('../conf/prod', `${ws}/x/.env`)
    const denied = places(['**/.env', '**/vault/', 'top'])
    expect(short(denied.survey())).toEqual([])
    const judged: unknown[] = []
    denied.openTree(
      answer => judged.push(answer),
      why => judged.push(why),
    )
    denied.watchTree()
    try {
      for (let i = 0; i < 200 && judged.length < 3; i++) await Bun.sleep(5)
      expect(judged).toContainEqual({ place: `${ws}/a/b/.env` })
      expect(judged.filter(answer => answer === 'survey')).toHaveLength(2)
      expect(short(denied.survey())).toEqual(['a/b/.env', 'conf/prod', 'x/vault'])
      rmSync(`${ws}/a`, { recursive: true })
      expect(short(denied.survey())).toEqual(['conf/prod', 'x/vault'])
      file('new/.env')
      const isFound = (): boolean => short(denied.survey()).includes('new/.env')
      for (let i = 0; i < 200 && !isFound(); i++) await Bun.sleep(5)
      expect(short(denied.survey())).toEqual(['conf/prod', 'new/.env', 'x/vault'])
    } finally {
      await denied.close()
    }
  })
})

describe('a name that appeared', () => {
  test('is a denied place, or irrelevant', () => {
    const denied = places(['.env*'])
    denied.begin()
    file('.env.local')
    file('readme')
    expect(denied.judge(ws, '.env.local')).toEqual({ place: `${ws}/.env.local` })
    expect(denied.judge(ws, 'readme')).toBe('nothing')
    expect(denied.judge(`${ws}/other`, '.env.local')).toBe('nothing')
  })

  test('that is a directory, a link or another spelling needs a survey', () => {
    const denied = places(['.env*', 'a/b/key'])
    denied.begin()
    mkdirSync(`${ws}/a`)
    symlinkSync('x', `${ws}/.env`)
    file('.ENV.local')
    for (const name of ['a', '.env', '.ENV.local']) expect(denied.judge(ws, name)).toBe('survey')
  })

  test('is judged without listing a directory first', () => {
    for (let i = 0; i < 20; i++) file(`.env.${i}`)
    const denied = places(['.env*'])
    denied.begin()
    expect([...denied.directories.keys()]).toEqual([ws])
  })
})
