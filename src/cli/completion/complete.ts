/** `pen __complete -- WORD…` for the scripts of `pen completion`: prints candidates for the last word. Only reads. */
import { writeSync } from 'node:fs'
import { argumentsOf, beginsAtAWord } from '../frame/flags.ts'
import type { Verb, VerbTable } from '../frame/verb.ts'
import { type Candidate, NOTHING, type Offer, offer, offerLines, words } from './candidate.ts'
import { type Context, valueOffer, WORDS } from './values.ts'

/** Never prints an error, because the user is in the middle of a line. */
export async function complete(argv: readonly string[], table: VerbTable): Promise<number> {
  const typed = argv[0] === '--' ? argv.slice(1) : argv
  try {
    const found = await offerFor(typed, { table, env: process.env })
    writeSync(1, `${offerLines(found, typed.at(-1) ?? '').join('\n')}\n`)
  } catch {
    writeSync(1, 'words\n')
  }
  return 0
}

/** `typed` is the words after `pen`. The user is typing the last one. */
export async function offerFor(typed: readonly string[], context: Context): Promise<Offer> {
  const { table } = context
  const current = typed.at(-1) ?? ''
  const before = typed.slice(0, -1)
  const [first] = before
  if (first === undefined) return await firstWords(current, table)
  const name = [before.slice(0, 2).join(' '), first].find(known => Object.hasOwn(table, known))
  const seconds = before.length === 1 ? await secondWords(first, table) : []
  const load = name === undefined ? undefined : table[name]
  if (name === undefined || load === undefined) return offer(seconds)
  const { verb } = await load()
  const skipped = name.split(' ').length
  const found = await insideVerb(verb, before.slice(skipped), current, skipped + 1, context)
  return found.is === 'words' ? offer([...seconds, ...found.candidates]) : found
}

async function firstWords(current: string, table: VerbTable): Promise<Offer> {
  if (current.startsWith('-')) return words(['--help', '--version'])
  const groups = new Map<string, Candidate>()
  for (const name of Object.keys(table)) {
    const [first = '', second] = name.split(' ')
    if (second === undefined) groups.set(first, { value: first, about: await summaryOf(name, table) })
    else if (!groups.has(first)) groups.set(first, { value: first, about: '…' })
  }
  return offer([...groups.values()])
}

async function secondWords(group: string, table: VerbTable): Promise<Candidate[]> {
  const names = Object.keys(table).filter(name => name.startsWith(`${group} `))
  return await Promise.all(
    names.map(async name => ({
      value: name.slice(group.length + 1),
      about: await summaryOf(name, table),
    })),
  )
}

const summaryOf = async (name: string, table: VerbTable): Promise<string> =>
  (await table[name]?.())?.verb.summary ?? ''

/** Reads the words like the parser, but ignores mistakes. */
async function insideVerb(
  verb: Verb,
  before: readonly string[],
  current: string,
  offset: number,
  around: Context,
): Promise<Offer> {
  const given = new Set<string>()
  let context = around
  let position = 0
  for (const one of argumentsOf(verb, before)) {
    if (one.is === 'rest') {
      if (beginsAtAWord(verb)) return { is: 'command', at: offset + one.at }
      // Arguments of another program follow.
      return verb.command === undefined ? await positionalAt(verb, position, current, context) : NOTHING
    }
    if (one.is === 'word') position++
    else {
      given.add(one.name)
      const { spec, value, at } = one
      if (one.name === 'name') context = { ...context, name: value }
      const isOpen = value === undefined && at === before.length - 1
      if (isOpen && spec !== undefined && spec.kind !== 'boolean')
        return await valueOffer(spec, current, context)
    }
  }
  const equals = current.indexOf('=')
  if (current.startsWith('--') && equals > 0) {
    const name = current.slice(2, equals)
    const spec = Object.hasOwn(verb.flags, name) ? verb.flags[name] : undefined
    if (spec === undefined || spec.kind === 'boolean') return NOTHING
    return prefixed(`--${name}=`, await valueOffer(spec, current.slice(equals + 1), context))
  }
  if (current.startsWith('-')) return flagsOf(verb, given)
  if (beginsAtAWord(verb) && current !== '') return { is: 'command', at: offset + before.length }
  const found = await positionalAt(verb, position, current, context)
  return found === NOTHING && current === '' ? flagsOf(verb, given) : found
}

const prefixed = (prefix: string, found: Offer): Offer =>
  found.is === 'words'
    ? offer(found.candidates.map(one => ({ ...one, value: `${prefix}${one.value}` })))
    : found

/** The flags that can still be given. */
function flagsOf(verb: Verb, given: ReadonlySet<string>): Offer {
  const own = Object.entries(verb.flags)
    .filter(([name, { kind }]) => kind === 'list' || !given.has(name))
    .map(([name, { about }]) => ({ value: `--${name}`, about }))
  const end = verb.command === undefined ? [] : [{ value: '--', about: 'end of flags; the command follows' }]
  return offer([...own, { value: '--help', about: 'show help' }, ...end])
}

async function positionalAt(verb: Verb, index: number, current: string, context: Context): Promise<Offer> {
  const specs = Object.entries(verb.positionals)
  const last = specs.at(-1)
  const at = specs[index] ?? (last?.[1].arity === 'many' ? last : undefined)
  return (at && (await WORDS[`${verb.name} ${at[0]}`]?.(current, context))) ?? NOTHING
}
