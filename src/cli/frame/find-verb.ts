import { PenError } from '../../base/error.ts'
import { nearest } from '../../base/nearest.ts'
import { clip } from './flags.ts'
import type { Verb, VerbTable } from './verb.ts'

type FoundVerb =
  | { readonly is: 'verb'; readonly verb: Verb; readonly rest: readonly string[] }
  /** The first word of two-word verbs, without a second word. */
  | { readonly is: 'group'; readonly name: string; readonly rest: readonly string[] }

/** Splits the verb's one or two words from the front of `argv`, which must not start with a flag. */
export async function findVerb(argv: readonly string[], table: VerbTable): Promise<FoundVerb> {
  const [first = '', second] = argv
  if (first.includes(' ')) throw unknown(first, undefined)
  const two = `${first} ${second ?? ''}`
  for (const [name, rest] of [
    [two, argv.slice(2)],
    [first, argv.slice(1)],
  ] as const) {
    const load = Object.hasOwn(table, name) ? table[name] : undefined
    if (load) return { is: 'verb', verb: (await load()).verb, rest }
  }
  const names = Object.keys(table)
  const members = groupMembers(first, table)
  if (members.length === 0)
    throw unknown(first, nearest(first, new Set(names.map(name => name.split(' ')[0] ?? name))))
  if (second === undefined || second.startsWith('-')) return { is: 'group', name: first, rest: argv.slice(1) }
  throw unknown(two, nearest(two, members), `pen ${first} --help`)
}

export const groupMembers = (group: string, table: VerbTable): string[] =>
  Object.keys(table).filter(name => name.startsWith(`${group} `))

function unknown(words: string, meant: string | undefined, help = 'pen help'): PenError {
  return new PenError('USAGE', {
    what: `unknown verb "${clip(words)}"`,
    hint: meant ? `did you mean pen ${meant}?` : help,
  })
}
