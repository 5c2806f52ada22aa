import { type Paint, plain } from './colour.ts'
import type { FlagSpec } from './flag-spec.ts'
import type { Verb } from './verb.ts'

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

export function verbHelp(verb: Verb, paint: Paint = plain): string {
  const sections = [`${verb.summary}.`, section('Usage', [`  ${usageLine(verb)}`], paint)]
  if (verb.details) sections.splice(1, 0, verb.details)
  const words = Object.entries(verb.positionals).map(([name, { about }]): Row => [name.toUpperCase(), about])
  if (words.length > 0) sections.push(section('Words', columns(words), paint))
  const flags = Object.entries(verb.flags).map(([name, spec]): Row => {
    const again = spec.kind === 'list' ? ' (may be repeated)' : ''
    const short = spec.kind === 'boolean' && spec.short !== undefined ? `-${spec.short}, ` : ''
    return [`${short}--${name} ${valueName(spec)}`.trimEnd(), spec.about + again]
  })
  sections.push(section('Flags', columns([...flags, ['--help', 'print this text']]), paint))
  const examples = verb.examples.flatMap(({ line, does }) => [`  ${line}`, `      ${does}`])
  if (examples.length > 0) sections.push(section('Examples', examples, paint))
  return sections.join('\n\n')
}

export function overview(verbs: readonly Verb[], paint: Paint = plain, group?: string): string {
  const rows = verbs.map(({ name, summary }): Row => [`pen ${name}`, summary])
  const title = group
    ? `pen ${group}: choose one.`
    : 'pen runs coding agents and other untrusted programs in a sandbox that one policy on the host decides.'
  return [
    title,
    section('Verbs', columns(rows), paint),
    'pen help VERB, or pen VERB --help, tells more.',
  ].join('\n\n')
}

type Row = [term: string, about: string]

const section = (title: string, lines: readonly string[], paint: Paint): string =>
  [`${paint('bold', title)}`, ...lines].join('\n')

function columns(rows: readonly Row[]): string[] {
  const width = Math.min(28, Math.max(...rows.map(([term]) => term.length)))
  return rows.map(([term, about]) =>
    term.length > width ? `  ${term}\n  ${' '.repeat(width)}  ${about}` : `  ${term.padEnd(width)}  ${about}`,
  )
}
