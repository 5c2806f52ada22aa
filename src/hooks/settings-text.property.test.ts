import { expect, test } from 'bun:test'
import fc from 'fast-check'
import { HOOKED_AGENTS } from './agents.ts'
import { hookLine } from './install.ts'
import { insertEntry, removeEntry } from './settings-text.ts'

const line = hookLine('claude-code', '/home/you/project')
const FILE = 'settings.json'

const settings = Object.values(HOOKED_AGENTS).flatMap(({ files }) =>
  files.flatMap(file => (file.kind === 'settings' ? [file] : [])),
)

/** Settings with other hooks, in several shapes, with comments and trailing commas. */
const rest = fc.constantFrom(
  '',
  '"model": "x", "permissions": {"allow": ["Bash(ls:*)"]}',
  '"hooks": {}',
  '"hooks": {"PreToolUse": []}',
  '"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine"}]}], "Stop": []}',
  '"a": [1, {"hooks": {"PreToolUse": 1}}], "hooks": {"Stop": [{}]}, "z": "// no comment, } ]"',
)
const space = fc.constantFrom('', ' ', '\n', '\r\n\t', '  \n  ')
const comment = fc.constantFrom('', '// {"hooks": [\n', '/* , } */', ' // "PreToolUse": [\n\t')

test('an entry is valid where it is inserted, and cutting it out restores every byte', () => {
  const files = fc.tuple(space, comment, rest, space, comment, fc.constantFrom('', ','))
  fc.assert(
    fc.property(fc.constantFrom(...settings), files, (kind, [before, head, members, after, tail, comma]) => {
      const isPlain = !kind.comments
      const inner = members.replaceAll('PreToolUse', kind.event)
      const last = !isPlain && inner !== '' ? comma : ''
      const text = isPlain
        ? `${before}{${after}${inner}${before}}${after}`
        : `${before}${head}{${after}${head}${inner}${last}${tail}${before}}${after}${head}`
      const insertion = { event: kind.event, entry: kind.entry(line), comments: kind.comments }
      const done = insertEntry(Buffer.from(text), FILE, insertion)
      // Valid: another entry can be inserted into it.
      insertEntry(Buffer.from(done.text), FILE, { ...insertion, entry: { other: true } })
      if (isPlain) expect(JSON.parse(done.text).hooks[kind.event][0]).toEqual(kind.entry(line))
      expect(removeEntry(done.text, FILE, done.inserted, kind.event)).toBe(text)
      // Edits elsewhere stay.
      expect(removeEntry(`${done.text}\n\n`, FILE, done.inserted, kind.event)).toBe(`${text}\n\n`)
    }),
    { numRuns: 300 },
  )
})

const insertion = { event: 'PreToolUse', entry: { command: line }, comments: false }

test('broken settings, and settings of another shape, are refused with the place', () => {
  const broken = [
    '',
    '{',
    '[]',
    '"x"',
    '{"hooks": []}',
    '{"hooks": {"PreToolUse": {}}}',
    '// x\n{}',
    '{"a":1,"a":2}',
  ]
  for (const text of broken) expect(() => insertEntry(Buffer.from(text), FILE, insertion)).toThrow()
})

test('no file makes it fail in another way than with a refusal', () => {
  const odd = fc.tuple(fc.string(), fc.json(), fc.string()).map(([a, b, c]) => a + b + c)
  fc.assert(
    fc.property(odd, text => {
      try {
        insertEntry(Buffer.from(text), FILE, { ...insertion, comments: true })
      } catch (error) {
        expect(error).toMatchObject({ name: 'PenError' })
      }
    }),
    { numRuns: 300 },
  )
})

test('settings that a program printed again lose the entry alone', () => {
  const other = { matcher: 'Bash', hooks: [] }
  const before = { model: 'x', hooks: { PreToolUse: [other] } }
  const { text, inserted } = insertEntry(Buffer.from(JSON.stringify(before)), FILE, insertion)
  const printed = JSON.stringify({ ...JSON.parse(text), theme: 'dark' })
  expect(JSON.parse(removeEntry(printed, FILE, inserted, 'PreToolUse') ?? '')).toEqual({
    ...before,
    theme: 'dark',
  })
  expect(removeEntry(JSON.stringify(before), FILE, inserted, 'PreToolUse')).toBeUndefined()
})
