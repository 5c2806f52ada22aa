import type { Paint } from '../render/colour.ts'
import type { FlagSpec } from './flag-spec.ts'
import type { Verb } from './verb.ts'

/** For example `pen plan [flags] -- COMMAND`. */
export function usageLine(verb: Verb): string {
  const parts = [`pen ${verb.name}`]
  if (Object.keys(verb.flags).length > 0) parts.push('[flags]')
  for (const [name, { arity }] of Object.entries(verb.positionals)) {
    const word = name.toUpperCase()
    parts.push({ one: word, optional: `[${word}]`, many: `[${word}…]` }[arity])
  }
  if (verb.command === 'required') parts.push('-- COMMAND…')
  if (verb.command === 'optional') parts.push('[-- COMMAND…]')
  if (verb.command === 'after-dashes') parts.push('[-- ARGUMENTS…]')
  return parts.join(' ')
}

/** The placeholder after the flag: `PATH`, `strict|coding|dev` or nothing. */
function valueName(spec: FlagSpec): string {
  if (spec.kind === 'boolean') return ''
  return spec.kind === 'choice' ? spec.choices.join('|') : spec.value
}

/** What help is printed on. */
export interface Page {
  readonly paint: Paint
  readonly width: number
}

export function verbHelp(verb: Verb, page: Page): string {
  const { width } = page
  const sections = [
    wrap(`${verb.summary}.`, width).join('\n'),
    section('Usage', hang('  ', usageLine(verb), width), page),
  ]
  if (verb.details) sections.splice(1, 0, wrap(verb.details, width).join('\n'))
  const words = Object.entries(verb.positionals).map(([name, { about }]): Row => [name.toUpperCase(), about])
  if (words.length > 0) sections.push(section('Arguments', columns(words, width), page))
  const flags = Object.entries(verb.flags).map(([name, spec]): Row => {
    const again = spec.kind === 'list' ? ' (may be repeated)' : ''
    const short = spec.kind === 'boolean' && spec.short !== undefined ? `-${spec.short}, ` : ''
    return [`${short}--${name} ${valueName(spec)}`.trimEnd(), spec.about + again]
  })
  sections.push(section('Flags', columns([...flags, ['--help', 'show this help']], width), page))
  // Command lines are not wrapped, so that they can be copied.
  const examples = verb.examples.flatMap(({ line, does }) => [`  ${line}`, ...hang('      ', does, width)])
  if (examples.length > 0) sections.push(section('Examples', examples, page))
  return sections.join('\n\n')
}

/** A title, and the verbs below it. */
interface HelpGroup {
  readonly title: string
  readonly verbs: readonly Verb[]
}

/** One line per verb, with the group in the first column: `pen help` fits a screen of 80x24. */
export function overview(groups: readonly HelpGroup[], page: Page): string {
  const { paint, width } = page
  const verbs = groups.flatMap(group => group.verbs)
  const first = Math.max(...groups.map(({ title }) => title.length)) + 2
  const second = Math.max(...verbs.map(({ name }) => name.length)) + 2
  const lines = groups.flatMap(group =>
    group.verbs.flatMap(({ name, summary }, i) => {
      const title = i === 0 ? group.title : ''
      const [line = '', ...more] = hang(`${' '.repeat(first)}${name.padEnd(second)}`, summary, width)
      return [paint('bold', title) + line.slice(title.length), ...more]
    }),
  )
  const isNarrow = width - first - second < 28
  return [
    ...wrap('pen runs coding agents and other untrusted programs in a sandbox.', width),
    ...wrap('One policy on the host controls files, network and resources.', width),
    '',
    ...(isNarrow ? [sections(groups, page)] : lines),
    '',
    ...wrap('pen help VERB explains one verb; pen help all lists every verb.', width),
  ].join('\n')
}

/** Every verb, by group. */
export const fullOverview = (groups: readonly HelpGroup[], page: Page): string =>
  [sections(groups, page), ...wrap(MORE, page.width)].join('\n\n')

/** The verbs that share a first word, such as `pen config`. */
export const groupOverview = (group: string, verbs: readonly Verb[], page: Page): string =>
  [
    wrap(`pen ${group}: choose a subcommand.`, page.width).join('\n'),
    sections([{ title: 'Verbs', verbs }], page),
    wrap(MORE, page.width).join('\n'),
  ].join('\n\n')

const MORE = 'Run pen help VERB or pen VERB --help for details.'

const sections = (groups: readonly HelpGroup[], page: Page): string =>
  groups
    .map(({ title, verbs }) => {
      const rows = verbs.map(({ name, summary }): Row => [`pen ${name}`, summary])
      return section(title, columns(rows, page.width), page)
    })
    .join('\n\n')

type Row = [term: string, about: string]

const section = (title: string, lines: readonly string[], { paint }: Page): string =>
  [paint('bold', title), ...lines].join('\n')

/** Two columns. If the second is too narrow to read, it goes below the first. */
function columns(rows: readonly Row[], width: number): string[] {
  const first = Math.min(28, Math.max(...rows.map(([term]) => term.length)))
  const isNarrow = width - first < 28
  return rows.flatMap(([term, about]) => {
    if (isNarrow) return [...hang('  ', term, width), ...hang('      ', about, width)]
    const below = ' '.repeat(first + 4)
    return term.length > first
      ? [`  ${term}`, ...hang(below, about, width)]
      : hang(`  ${term.padEnd(first)}  `, about, width)
  })
}

/** Breaks a text at its spaces into lines of at most `width` characters. A longer word gets its own line. */
export function wrap(text: string, width: number): string[] {
  return text.split('\n').flatMap(paragraph => {
    const lines: string[] = []
    let line = ''
    for (const word of paragraph.split(' ')) {
      if (line !== '' && line.length + 1 + word.length > width) {
        lines.push(line)
        line = word
      } else line = line === '' ? word : `${line} ${word}`
    }
    return [...lines, line]
  })
}

/** The first line starts with `head`; the others are indented by its length. */
const hang = (head: string, text: string, width: number): string[] =>
  wrap(text, Math.max(1, width - head.length)).map(
    (line, i) => `${i === 0 ? head : ' '.repeat(head.length)}${line}`,
  )
