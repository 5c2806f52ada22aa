import { type Paint, plain } from '../render/colour.ts'
import type { FlagSpec } from './flag-spec.ts'
import type { Verb } from './verb.ts'
import { hang, wrap } from './wrap.ts'

/** `pen plan [flags] -- COMMAND` from the declarations. */
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

/** What follows the flag: `PATH`, `strict|coding|dev`, nothing. */
export function valueName(spec: FlagSpec): string {
  if (spec.kind === 'boolean') return ''
  return spec.kind === 'choice' ? spec.choices.join('|') : spec.value
}

/** How wide help is where nothing tells the width of a terminal. */
export const USUAL_WIDTH = 80

export function verbHelp(verb: Verb, paint: Paint = plain, width = USUAL_WIDTH): string {
  const sections = [
    wrap(`${verb.summary}.`, width).join('\n'),
    section('Usage', hang('  ', usageLine(verb), width), paint),
  ]
  if (verb.details) sections.splice(1, 0, wrap(verb.details, width).join('\n'))
  const words = Object.entries(verb.positionals).map(([name, { about }]): Row => [name.toUpperCase(), about])
  if (words.length > 0) sections.push(section('Words', columns(words, width), paint))
  const flags = Object.entries(verb.flags).map(([name, spec]): Row => {
    const again = spec.kind === 'list' ? ' (may be repeated)' : ''
    const short = spec.kind === 'boolean' && spec.short !== undefined ? `-${spec.short}, ` : ''
    return [`${short}--${name} ${valueName(spec)}`.trimEnd(), spec.about + again]
  })
  sections.push(section('Flags', columns([...flags, ['--help', 'print this text']], width), paint))
  // A line to be copied is not broken.
  const examples = verb.examples.flatMap(({ line, does }) => [`  ${line}`, ...hang('      ', does, width)])
  if (examples.length > 0) sections.push(section('Examples', examples, paint))
  return sections.join('\n\n')
}

export function overview(
  verbs: readonly Verb[],
  paint: Paint = plain,
  group?: string,
  width = USUAL_WIDTH,
): string {
  const rows = verbs.map(({ name, summary }): Row => [`pen ${name}`, summary])
  const title = group
    ? `pen ${group}: choose one.`
    : 'pen runs coding agents and other untrusted programs in a sandbox that one policy on the host decides.'
  return [
    wrap(title, width).join('\n'),
    section('Verbs', columns(rows, width), paint),
    wrap('pen help VERB, or pen VERB --help, tells more.', width).join('\n'),
  ].join('\n\n')
}

type Row = [term: string, about: string]

const section = (title: string, lines: readonly string[], paint: Paint): string =>
  [`${paint('bold', title)}`, ...lines].join('\n')

/** Two columns, or one below the other where the second would be too narrow to read. */
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
