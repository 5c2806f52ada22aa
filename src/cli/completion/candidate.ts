/** What completion offers, and the lines in which a shell's script reads it. */
import { printable } from '../../base/printable.ts'

export interface Candidate {
  readonly value: string
  readonly about?: string
}

export type Offer =
  | { readonly is: 'words'; readonly candidates: readonly Candidate[] }
  /** Files and directories: the shell knows best how to spell them. */
  | { readonly is: 'paths' }
  /** A command of its own begins at this word, counted from `pen`, which is 0. */
  | { readonly is: 'command'; readonly at: number }

export const NOTHING: Offer = { is: 'words', candidates: [] }

export const words = (values: Iterable<string>, about?: string): Offer => ({
  is: 'words',
  candidates: Array.from(values, value => ({ value, ...(about !== undefined && { about }) })),
})

/**
 * Values end up on a command line. Names may come from a sandbox, which would like to choose what is run there: what is no plain
 * word to every shell is not offered, whatever it was checked for before.
 */
const PLAIN_WORD = /^[A-Za-z0-9._:=/@%+,-]+$/
const LONGEST = 300
const MOST = 1000

/** The kind first, then one candidate to a line, with a tab before what it is. */
export function offerLines(offer: Offer, current: string): string[] {
  if (offer.is === 'command') return [`command\t${offer.at}`]
  if (offer.is === 'paths') return ['paths']
  const fitting = offer.candidates.filter(
    ({ value }) => value.length <= LONGEST && PLAIN_WORD.test(value) && value.startsWith(current),
  )
  return [
    'words',
    ...fitting.slice(0, MOST).map(({ value, about = '' }) => `${value}\t${printable(about, 120)}`),
  ]
}
