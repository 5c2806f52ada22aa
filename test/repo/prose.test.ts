/** Comments, texts and pages stay readable: short lines, short sentences, words of the field. */
import { describe, expect, test } from 'bun:test'
import { commentsOf, longLines, PAGES, sentencesOf, textsOf, unusedWords, wordCount } from './prose.ts'
import { read, sources } from './sources.ts'

const COLUMNS = 120
const WORDS = 30

const files = sources('src', 'test', 'scripts', 'bench').filter(
  file => !file.path.startsWith('test/repo/prose'),
)
const inComments = (faults: (comment: string) => readonly string[]): string[] =>
  files.flatMap(file =>
    commentsOf(file.text).flatMap(comment => faults(comment).map(f => `${file.path}: ${f}`)),
  )

describe('prose', () => {
  test(`a line of a page has at most ${COLUMNS} columns, except tables, code and links`, () => {
    expect(PAGES.flatMap(page => longLines(page, COLUMNS))).toEqual([])
  })

  test(`a sentence in a comment has at most ${WORDS} words`, () => {
    expect(inComments(comment => sentencesOf(comment).filter(s => wordCount(s) > WORDS))).toEqual([])
  })

  test('comments use none of the words that this project does not use', () => {
    expect(inComments(unusedWords)).toEqual([])
  })

  test('texts for people and test titles use none of those words', () => {
    const faults = files.flatMap(file =>
      textsOf(file.text)
        .flatMap(unusedWords)
        .map(word => `${file.path}: ${word}`),
    )
    expect(faults).toEqual([])
  })

  test('pages use none of those words', () => {
    const faults = PAGES.flatMap(page => unusedWords(read(page)).map(word => `${page}: ${word}`))
    expect(faults).toEqual([])
  })
})

describe('the reader of prose', () => {
  test('joins line comments that follow each other, and drops their marks', () => {
    expect(commentsOf("let a = '// no' // one\n  // two\n\n// three\n/** four\n * five */")).toEqual([
      'one\ntwo',
      'three',
      ' four\nfive ',
    ])
  })

  test('ends a sentence at a full stop or a list item, not inside a name', () => {
    expect(sentencesOf('Reads a.ts first.\nThen:\n- b\n- c')).toEqual([
      'Reads a.ts first',
      'Then:',
      '- b',
      '- c',
    ])
    expect(wordCount('- one, two (three) &')).toBe(3)
  })

  test('finds whole words alone', () => {
    expect(unusedWords('Told the bookkeeper, not a keeper, as user nobody')).toEqual(['Told', 'keeper'])
  })

  test('takes strings of two words for texts', () => {
    expect(textsOf("a('one', 'two words', `three more words`) // 'not this one'")).toEqual([
      "'two words'",
      '`three more words`',
    ])
  })
})
