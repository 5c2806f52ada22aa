/** Rules about single files: what they may contain, how long they are, how they are named. */
import { describe, expect, test } from 'bun:test'
import { basename, dirname } from 'node:path'
import { sources } from './sources.ts'

const LONGEST = 400
const MOST_FILES = 31
/** Tables that read better in one piece. Each needs its reason. */
const LONGER: Readonly<Record<string, string>> = {}

const FORBIDDEN_NAMES = /^(.*-)?(utils?|helpers?|manager|common|types|misc|shared)(\.test)?\.ts$/

const src = sources('src')
const product = src.filter(source => !source.isTest)
const everything = [...src, ...sources('test', 'scripts', 'bench')]

describe('files', () => {
  test(`none is longer than ${LONGEST} lines`, () => {
    const long = everything.filter(
      source => LONGER[source.path] === undefined && source.text.split('\n').length - 1 > LONGEST,
    )
    expect(long.map(source => source.path)).toEqual([])
  })

  test('each is named for what it holds, not utils, helpers, manager, common or types', () => {
    expect(everything.map(s => s.path).filter(path => FORBIDDEN_NAMES.test(basename(path)))).toEqual([])
  })

  test('src/ is at most three levels deep', () => {
    const deep = src.filter(({ path }) => path.split('/').length - 2 > 3)
    expect(deep.map(source => source.path)).toEqual([])
  })

  test(`no folder of src/ holds more than ${MOST_FILES} source files`, () => {
    const counts = new Map<string, number>()
    for (const { path } of product) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1)
    expect([...counts].filter(([, count]) => count > MOST_FILES)).toEqual([])
  })
})

describe('code', () => {
  const without = (files: typeof everything, word: RegExp, allowed: readonly string[] = []): string[] =>
    files.filter(s => word.test(s.code) && !allowed.includes(s.path)).map(s => s.path)

  test('child_process is imported by src/library/start-by-node.ts alone', () => {
    const users = product.filter(s => s.imports.some(i => i.specifier.endsWith('child_process')))
    expect(users.map(s => s.path).filter(path => path !== 'src/library/start-by-node.ts')).toEqual([])
  })

  test('programs are started by src/base/start-program.ts, and by the library on Node, alone', () => {
    expect(without(product, /\bBun\s*\.\s*(spawn|spawnSync|\$)\b/, ['src/base/start-program.ts'])).toEqual([])
  })

  test('only src/main.ts ends the process', () => {
    expect(without(product, /\bprocess\s*\.\s*(exit|reallyExit|abort)\b/, ['src/main.ts'])).toEqual([])
  })

  test('any is written nowhere', () => {
    const word = ['a', 'ny'].join('') // so that this file does not contain it
    const written = new RegExp(`(:\\s*|\\bas\\s+|<)${word}\\b|\\b${word}\\[\\]`)
    expect(written.test(`let x: ${word}`)).toBe(true)
    expect(without(everything, written)).toEqual([])
  })

  test('the type checker is never switched off', () => {
    const marks = new RegExp(`@ts-${'(ignore|nocheck)'}`)
    expect(everything.filter(s => marks.test(s.text)).map(s => s.path)).toEqual([])
  })

  test('an import of a file of ours ends in .ts or .json, or is the Dockerfile that pen carries', () => {
    const bad = everything.flatMap(s =>
      s.imports
        .filter(
          i => i.file !== undefined && !/\.(ts|json)$|^\.\.\/\.\.\/image\/Dockerfile$/.test(i.specifier),
        )
        .map(i => `${s.path} ${i.specifier}`),
    )
    expect(bad).toEqual([])
  })

  test('tests are skipped through test/skip.ts alone', () => {
    const raw =
      /\b(test|it|describe)\s*\.\s*(skip|skipIf|todo|todoIf|only|if|failing)\b|\bx(test|it|describe)\(/
    const tests = everything.filter(s => s.isTest || s.path.startsWith('test/'))
    expect(without(tests, raw, ['test/skip.ts'])).toEqual([])
  })
})
