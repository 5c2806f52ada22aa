/** What a change of configuration means, for the person who is to agree to it. */
import { printable } from '../../base/printable.ts'
import type { Proposal } from '../../config/proposal.ts'
import type { Difference } from '../../policy/diff/difference.ts'
import type { Paint } from './colour.ts'

/** A line is named where it stands in the project: elsewhere the person did not look. */
const PROPOSED = '/.pen/config.json'

/** As long as a document may be. */
const LONGEST = 65_536

const SIGNS = { added: '+', removed: '-', changed: '~' } as const

/** By the beginning of a key: what it means that this became wider. */
const WIDER: readonly (readonly [string, string])[] = [
  ['files.read', 'it reads, or writes, what it could not'],
  ['files.write', 'it writes what it could not'],
  ['files.deny', 'what was hidden can be opened'],
  ['files.protect', 'what your machine may run can be written'],
  ['network.deny', 'what was refused by name is not any more'],
  ['network.offline', 'it has a network'],
  ['network.mode', 'it has a wider way out'],
  ['network.ask', 'it can make you be asked'],
  ['network.hold', 'refused connections are held longer'],
  ['network.idle', 'silent connections are kept longer'],
  ['network.upstreamProxy', 'its traffic goes another way'],
  ['network.', 'it connects to more'],
  ['exec.', 'one command may use more'],
  ['limits.', 'it may use more'],
  ['env', 'its programs are given this'],
  ['mounts', 'it sees what it could not'],
  ['image', 'it is made of something else'],
  ['tools.', 'it runs programs that it could not'],
  ['isolation', 'a weaker wall is enough'],
  ['backend', 'another engine holds it'],
  ['runtime', 'another program holds it'],
  ['user', 'it is another user'],
  ['git.identity', 'its commits carry your name and e-mail address'],
  ['ssh.agent', 'it signs with this key of yours'],
  ['acceptGaps', 'a promise that is not kept is accepted'],
  ['ports', 'programs of this machine reach it'],
  ['profile', 'it starts from a wider profile'],
]

/** Undefined for what takes away or changes nothing that counts. */
export const wideningWords = ({ key, widens }: Difference): string | undefined =>
  widens ? (WIDER.find(([start]) => key.startsWith(start))?.[1] ?? 'it may do more') : undefined

export function proposalText({ differences, elsewhere, digest }: Proposal, paint: Paint): string {
  const line = (difference: Difference, when = ''): string => {
    const { key, change, item, was, source } = difference
    const from = source?.place?.file.endsWith(PROPOSED) ? `  (${PROPOSED.slice(1)}:${source.place.line})` : ''
    // Whole, however long: what is cut off would not have been shown.
    const value = `${was === undefined ? '' : `${printable(was, LONGEST)} → `}${printable(item, LONGEST)}`
    const words = wideningWords(difference)
    const said = `${SIGNS[change]} ${key} ${value}${from}`
    if (words === undefined) return `  ${said}`
    return `${paint('red', `! ${said}`)}\n      ${paint('bold', 'WIDENS')}: ${words}${when}`
  }
  const widening = differences.filter(({ widens }) => widens).length + elsewhere.length
  // What counts stands last, next to the question.
  const [others, wider] = [false, true].map(widens => differences.filter(one => one.widens === widens))
  return [
    ...[...(others ?? []), ...(wider ?? [])].map(difference => line(difference)),
    ...elsewhere.map(({ profile, difference }) => line(difference, `, when run with --profile ${profile}`)),
    ...(differences.length + elsewhere.length === 0
      ? ['the text differs, and what a sandbox may do does not']
      : [
          widening === 0
            ? 'nothing of this lets a sandbox do more'
            : paint('red', `${widening} of these ${widening === 1 ? 'lets' : 'let'} a sandbox do more`),
        ]),
    digest,
  ].join('\n')
}

export const proposalData = ({ differences, elsewhere, digest, before, after }: Proposal) => ({
  version: 1,
  same: before?.equals(after) === true,
  digest,
  widens: differences.some(({ widens }) => widens) || elsewhere.length > 0,
  differences: [
    ...differences.map(difference => differenceData(difference, null)),
    ...elsewhere.map(({ profile, difference }) => differenceData(difference, profile)),
  ],
})

const differenceData = (difference: Difference, profile: string | null) => ({
  key: difference.key,
  change: difference.change,
  item: difference.item,
  was: difference.was ?? null,
  widens: difference.widens,
  why: wideningWords(difference) ?? null,
  /** Where it shows only with this profile on the command line. */
  profile,
})
