import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { decideFile } from '../policy/files/decide-file.ts'
import { parseGlob } from '../policy/files/glob.ts'
import type { HostPath } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { AnyDepth } from './any-depth.ts'
import { expandGlob } from './expand.ts'
import { searchTree } from './search-tree.ts'

let ws = ''
beforeEach(() => {
  ws = realpathSync(mkdtempSync(join(tmpdir(), 'pen-search-')))
})
afterEach(() => rmSync(ws, { recursive: true, force: true }))

function file(path: string): void {
  mkdirSync(dirname(`${ws}/${path}`), { recursive: true })
  writeFileSync(`${ws}/${path}`, 'x')
}

/** Only the parts that are asked for. */
function policyOf(
  deny: readonly string[],
  read: readonly string[] = [],
  mounts: readonly object[] = [],
): Policy {
  const source = { layer: 'test', place: undefined }
  const rules = deny.map(text => {
    const glob = parseGlob(text)
    if (!glob.ok) throw new Error(glob.why)
    return { rule: { kind: 'glob', glob: glob.value }, source }
  })
  const grants = [ws, ...read.map(path => `${ws}/${path}`)].map(path => ({
    rule: { path, rank: path.split('/').length - 1 },
    source,
  }))
  return {
    workspace: ws,
    mounts: mounts.map(rule => ({ rule, source })),
    files: { deny: rules, read: grants, write: [], protect: [] },
  } as unknown as Policy
}

function search(policy: Policy, most?: number, git?: string): string[] {
  const anyDepth = AnyDepth.of(policy, git)
  const found = anyDepth === undefined ? new Map() : searchTree(anyDepth, most)
  return [...new Set([...found.values()].flat())].map(path => path.slice(ws.length + 1)).sort(byText)
}

const byText = (a: string, b: string): number => (a < b ? -1 : 1)

describe('a glob at any depth finds', () => {
  test('nothing, and lists nothing, where the policy has none', () => {
    expect(AnyDepth.of(policyOf(['.env', 'a/*']), undefined)).toBeUndefined()
  })

  test('names at every depth, and whole directories, which it does not enter', () => {
    for (const path of [
      '.env',
      'a/b/.env',
      'a/env',
      'a/.env.d/.env',
      'k/x/y',
      'a/k/x/y',
      'k/z/y',
      'v/f',
      'w/v',
    ])
      file(path)
    mkdirSync(`${ws}/deep/v/v`, { recursive: true })
    expect(search(policyOf(['**/.env']))).toEqual(['.env', 'a/.env.d/.env', 'a/b/.env'])
    expect(search(policyOf(['**/.env*']))).toEqual(['.env', 'a/.env.d', 'a/b/.env'])
    expect(search(policyOf(['**/k/x/*']))).toEqual(['a/k/x/y', 'k/x/y'])
    expect(search(policyOf(['**/v/']))).toEqual(['deep/v', 'v'])
    expect(search(policyOf(['**/v']))).toEqual(['deep/v', 'v', 'w/v'])
  })

  test('links as names, and nothing behind them', () => {
    file('real/.env')
    symlinkSync('real', `${ws}/alias`)
    symlinkSync('real/.env', `${ws}/.env`)
    symlinkSync('..', `${ws}/real/up`)
    expect(search(policyOf(['**/.env']))).toEqual(['.env', 'real/.env'])
  })

  test('nothing where the sandbox sees other files, or none', () => {
    for (const path of [
      '.git/.env',
      'node_modules/a/.env',
      'big/.env',
      'part/.env',
      'part/open/.env',
      'src/.env',
    ])
      file(path)
    const policy = policyOf(
      ['**/.env', 'big/', 'part/'],
      ['part/open'],
      [{ kind: 'volume', volume: 'modules', at: `${ws}/node_modules` }],
    )
    expect(search(policy, 5, `${ws}/.git`)).toEqual(['part/.env', 'part/open/.env', 'src/.env'])
  })

  test('names in a directory with very many', () => {
    for (let i = 0; i < 600; i++) file(`many/f${i}`)
    file('many/.env')
    expect(search(policyOf(['**/.env']))).toEqual(['many/.env'])
  })
})

describe('a search stops the run', () => {
  test('at more directories than the bound, and not at the bound', () => {
    for (let i = 0; i < 9; i++) mkdirSync(`${ws}/a/${i}`, { recursive: true })
    expect(search(policyOf(['**/.env']), 11)).toEqual([])
    expect(() => search(policyOf(['**/.env']), 10)).toThrow(/more than 10; most of those found are in \.\/a/)
  })

  test('at a denied name, or one below a directory, that is no text', () => {
    const bytes = (path: string): Buffer => Buffer.from(`${ws}/${path}`, 'latin1')
    mkdirSync(bytes('d\xff'))
    writeFileSync(bytes('d\xff/\xfe'), '')
    expect(search(policyOf(['**/.env*']))).toEqual([])
    writeFileSync(bytes('d\xff/.env'), '')
    expect(() => search(policyOf(['**/.env*']))).toThrow('no text')
    rmSync(bytes('d\xff'), { recursive: true })
    writeFileSync(bytes('.env\xff'), '')
    expect(() => search(policyOf(['**/.env*']))).toThrow('no text')
    rmSync(bytes('.env\xff'))
    file('\ufffd/.env')
    expect(search(policyOf(['**/.env*']))).toEqual(['\ufffd/.env'])
  })
})

test('what is covered is exactly what the policy denies', () => {
  const name = fc.constantFrom('a', 'b', 'ab', '.env', 'k.pem', 'é', 'new\nline')
  const part = fc.constantFrom('a', 'b', 'a*', '?', '.env', '*.pem', '*b')
  const glob = fc
    .tuple(fc.boolean(), fc.array(part, { minLength: 1, maxLength: 3 }), fc.boolean())
    .map(([deep, parts, dir]) => `${deep ? '**/' : ''}${parts.join('/')}${dir ? '/' : ''}`)
  const tree = fc.array(fc.array(name, { minLength: 1, maxLength: 4 }), { maxLength: 12 })
  fc.assert(
    fc.property(fc.array(glob, { minLength: 1, maxLength: 3 }), tree, (globs, paths) => {
      for (const path of readdirSync(ws)) rmSync(`${ws}/${path}`, { recursive: true })
      for (const path of paths) mkdirSync(`${ws}/${path.join('/')}`, { recursive: true })
      const policy = policyOf(globs)
      const anchored = policy.files.deny.flatMap(({ rule }) =>
        rule.kind === 'glob' && !rule.glob.anyDepth ? expandGlob(rule.glob, ws) : [],
      )
      const covered = [...search(policy), ...anchored.map(({ path }) => path.slice(ws.length + 1))]
      for (const path of readdirSync(ws, { recursive: true }) as string[]) {
        const isCovered = covered.some(top => path === top || path.startsWith(`${top}/`))
        expect([path, decideFile(policy, `${ws}/${path}` as HostPath, 'read').ok]).toEqual([path, !isCovered])
      }
    }),
    { numRuns: 150 },
  )
})

test('P3 a directory with a non-UTF-8 name is searched, also beside globs for its level', () => {
  file('plain')
  const directory = Buffer.concat([Buffer.from(`${ws}/caf`), Buffer.from([0xe9])])
  mkdirSync(directory)
  const rules = ['**/.env', '.env*', '*/key']
  expect(search(policyOf(rules))).toEqual([])
  writeFileSync(Buffer.concat([directory, Buffer.from('/.env')]), 'secret')
  expect(() => search(policyOf(rules))).toThrow('has a name that is no text')
})
