import { PenError } from '../../base/error.ts'
import { nearest } from '../../base/nearest.ts'
import { parseBytes, parseMillis } from '../../base/quantity.ts'
import type { FlagSpec, FlagSpecs, FlagValues, PositionalSpecs, PositionalValues } from './flag-spec.ts'
import { meantFlag } from './meant-flag.ts'
import type { Verb, VerbDescription } from './verb.ts'

interface Syntax<F extends FlagSpecs, P extends PositionalSpecs>
  extends Pick<VerbDescription, 'name' | 'command'> {
  readonly flags: F
  readonly positionals?: P
}

export interface Arguments<F extends FlagSpecs, P extends PositionalSpecs> {
  readonly flags: FlagValues<F>
  readonly positionals: PositionalValues<P>
  readonly command: readonly string[]
}

/** Parses strictly: anything that is not declared fails, and nothing typed is ignored or reinterpreted. */
export function parseArguments<F extends FlagSpecs, P extends PositionalSpecs>(
  syntax: Syntax<F, P>,
  argv: readonly string[],
): Arguments<F, P> {
  const given = new Map<string, string[]>()
  const words: string[] = []
  let command: readonly string[] = []
  const give = (name: string, text: string): void => {
    const before = given.get(name) ?? []
    if (before.length > 0 && syntax.flags[name]?.kind !== 'list')
      throw usage(`--${name} is given twice`, syntax.name, `remove one --${name}`)
    given.set(name, [...before, text])
  }

  for (const one of argumentsOf(syntax, argv)) {
    if (one.is === 'word') words.push(one.word)
    else if (one.is === 'rest') {
      if (syntax.command === undefined) words.push(...argv.slice(one.at))
      else command = argv.slice(one.at)
    } else {
      const letters = shortNames(syntax.flags, one.word)
      if (letters !== undefined) for (const name of letters) give(name, '')
      else if (one.spec === undefined) throw unknownFlag(syntax, one)
      else give(one.name, takeValue(one, one.spec, argv[one.at + 1]))
    }
  }

  if (syntax.command === 'required' && command.length === 0)
    throw usage('no command given', syntax.name, `pen ${syntax.name} -- COMMAND`)
  // The casts are safe: both records are built from the declarations that their types derive from.
  const flags = Object.fromEntries(
    Object.entries(syntax.flags).map(([name, spec]) => [name, readFlag(name, spec, given.get(name))]),
  ) as FlagValues<F>
  const positionals = readPositionals(syntax, words) as PositionalValues<P>
  return { flags, positionals, command }
}

/** The flags of `-i`, `-t` or `-it` if every letter is declared, else undefined. */
function shortNames(flags: FlagSpecs, word: string): string[] | undefined {
  if (!/^-[a-z]+$/.test(word)) return undefined
  const names = [...word.slice(1)].map(
    letter => Object.entries(flags).find(([, spec]) => spec.kind === 'boolean' && spec.short === letter)?.[0],
  )
  return names.every(name => name !== undefined) ? names : undefined
}

interface Flag {
  readonly is: 'flag'
  readonly at: number
  readonly word: string
  /** Without dashes. */
  readonly name: string
  /** Undefined for an unknown flag. */
  readonly spec: FlagSpec | undefined
  /** After `=`, or the next word. */
  readonly value: string | undefined
}

/** The arguments of a verb, with mistakes. `rest` is the command, or what follows `--`. */
export function* argumentsOf(
  syntax: Pick<Verb, 'flags' | 'command'>,
  argv: readonly string[],
): Generator<Flag | { readonly is: 'word'; readonly word: string } | { readonly is: 'rest'; at: number }> {
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at] ?? ''
    if (word === '--' || (!isFlag(word) && beginsAtAWord(syntax))) {
      yield { is: 'rest', at: word === '--' ? at + 1 : at }
      return
    }
    if (!isFlag(word)) {
      yield { is: 'word', word }
      continue
    }
    const [name = '', ...inline] = word.replace(/^--?/, '').split('=')
    const spec = word.startsWith('--') && Object.hasOwn(syntax.flags, name) ? syntax.flags[name] : undefined
    const takesNext = spec !== undefined && spec.kind !== 'boolean' && inline.length === 0
    const next = takesNext && !isFlag(argv[at + 1] ?? '') ? argv[at + 1] : undefined
    yield { is: 'flag', at, word, name, spec, value: inline.length > 0 ? inline.join('=') : next }
    if (next !== undefined) at++
  }
}

const isFlag = (word: string): boolean => word.startsWith('-') && word !== '-'

function unknownFlag({ name: verb, flags }: Pick<Verb, 'name' | 'flags'>, { name, word }: Flag): PenError {
  const shown = word.startsWith('--') && word.includes('=') ? `--${name}` : word
  const meant = meantFlag(name, flags)
  return usage(`unknown flag ${clip(shown)}`, verb, meant ? `did you mean ${meant}?` : help(verb))
}

/** A flag in place of a value is usually a forgotten value, not a value that starts with a dash. */
function takeValue({ name, value }: Flag, spec: FlagSpec, next: string | undefined): string {
  if (spec.kind === 'boolean') {
    if (value === undefined) return ''
    throw usage(`--${name} takes no value`, `--${name}`, `--${name} without a value`)
  }
  if (value !== undefined && value !== '') return value
  const metavar = spec.kind === 'choice' ? spec.choices.join('|') : spec.value
  throw value === undefined && next !== undefined
    ? usage(`--${name} needs a value, and ${next} looks like a flag`, `--${name}`, `--${name}=${metavar}`)
    : usage(`--${name} needs a value`, `--${name}`, `--${name} ${metavar}`)
}

function readFlag(name: string, spec: FlagSpec, texts: readonly string[] | undefined): unknown {
  if (spec.kind === 'boolean') return texts !== undefined
  if (spec.kind === 'list') {
    const { known } = spec
    return known === undefined ? (texts ?? []) : (texts ?? []).map(text => readChoice(name, known, text))
  }
  const text = texts?.[0]
  if (text === undefined || spec.kind === 'string') return text
  if (spec.kind === 'choice') return readChoice(name, spec.choices, text)
  if (spec.kind === 'count') return readCount(name, text)
  try {
    return spec.kind === 'bytes' ? parseBytes(text) : parseMillis(text)
  } catch (error) {
    if (error instanceof PenError) throw usage(error.message, `--${name}`, error.hint)
    throw error
  }
}

function readChoice(name: string, choices: readonly string[], text: string): string {
  if (choices.includes(text)) return text
  const meant = nearest(text, choices)
  const hint = meant ? `did you mean ${meant}?` : `choose one of ${choices.join(', ')}`
  throw usage(`"${clip(text)}" is not a value of --${name}`, `--${name}`, hint)
}

function readCount(name: string, text: string): number {
  if (/^(0|[1-9][0-9]{0,14})$/.test(text)) return Number(text)
  throw usage(`"${text}" is not a whole number`, `--${name}`, `--${name} 4`)
}

function readPositionals(
  syntax: { name: string; positionals?: PositionalSpecs },
  words: readonly string[],
): unknown {
  const rest = [...words]
  const entries = Object.entries(syntax.positionals ?? {}).map(([name, { arity }]) => {
    if (arity === 'many') return [name, rest.splice(0)]
    const word = rest.shift()
    if (word === undefined && arity === 'one')
      throw usage(`no ${name.toUpperCase()} given`, syntax.name, help(syntax.name))
    return [name, word]
  })
  if (rest[0] !== undefined)
    throw usage(`unexpected argument "${clip(rest[0])}"`, syntax.name, help(syntax.name))
  return Object.fromEntries(entries)
}

/** The verb's own flags, without their values and without a command's flags. Tolerates mistakes. */
export const ownFlags = (syntax: Pick<Verb, 'flags' | 'command'>, argv: readonly string[]): string[] =>
  Array.from(argumentsOf(syntax, argv)).flatMap(one => (one.is === 'flag' ? [one.word] : []))

/** Whether the first argument that is not a flag begins a command with flags of its own. */
export const beginsAtAWord = ({ command }: Pick<Verb, 'command'>): boolean =>
  command !== undefined && command !== 'after-dashes'

/** Shortens a mistyped word for an error message. */
export const clip = (word: string): string => (word.length > 80 ? `${word.slice(0, 79)}…` : word)

const help = (verb: string): string => `pen ${verb} --help`

/** `where` is a verb's name or a flag. */
function usage(what: string, where: string, hint: string | undefined): PenError {
  const at = where.startsWith('-') ? where : `pen ${where}`
  return new PenError('USAGE', { what, at, ...(hint !== undefined && { hint }) })
}
