/** Completion candidates, and the lines in which the shell's script reads them. */
import { printable } from '../../base/printable.ts'

export interface Candidate {
  readonly value: string
  readonly about?: string
}

export type Offer =
  | { readonly is: 'words'; readonly candidates: readonly Candidate[] }
  /** Files and directories: the shell completes and quotes them. */
  | { readonly is: 'paths' }
  /** A command begins at this word. `pen` is word 0. */
  | { readonly is: 'command'; readonly at: number }

export const offer = (candidates: readonly Candidate[]): Offer => ({ is: 'words', candidates })

export const NOTHING = offer([])

export const words = (values: readonly string[], about = ''): Offer =>
  offer(values.map(value => ({ value, about })))

/**
 * Candidates end up on a command line, and a sandbox can choose some of them to inject a command. Only words that are
 * plain to every shell are offered.
 */
const PLAIN_WORD = /^[A-Za-z0-9._:=/@%+,-]+$/
const LONGEST = 300
const MOST = 1000

/** First the kind, then one candidate per line: the value, a tab, and a description. */
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
