import { expect, test } from 'bun:test'
import { plain } from '../render/colour.ts'
import { fullOverview, groupOverview, overview, verbHelp, wrap } from './help-text.ts'
import { VERB_GROUPS } from './verbs.ts'

test('a text is broken at its spaces, and a word that is too long gets its own line', () => {
  expect(wrap('one two three', 7)).toEqual(['one two', 'three'])
  expect(wrap('a verylongword b', 4)).toEqual(['a', 'verylongword', 'b'])
  expect(wrap('two\nlines', 80)).toEqual(['two', 'lines'])
})

test.each([80, 40])(
  'help of every verb fits %i columns, but for words and examples that cannot be broken',
  async width => {
    const groups = await Promise.all(
      VERB_GROUPS.map(async ({ title, verbs }) => ({
        title,
        verbs: await Promise.all(Object.values(verbs).map(async load => (await load()).verb)),
      })),
    )
    const verbs = groups.flatMap(group => group.verbs)
    const examples = verbs.flatMap(verb => verb.examples.map(({ line }) => `  ${line}`))
    const page = { paint: plain, width }
    const texts = [
      overview(groups, page),
      fullOverview(groups, page),
      groupOverview('config', verbs, page),
      ...verbs.map(verb => verbHelp(verb, page)),
    ]
    const tooLong = texts
      .flatMap(text => text.split('\n'))
      .filter(line => line.length > width && line.trim().includes(' ') && !examples.includes(line))
    // A flag and the choices after it are one term.
    expect(tooLong.filter(line => !/^ {2}--\S+ \S+$/.test(line))).toEqual([])
  },
)
