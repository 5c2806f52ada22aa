/** Describes a change of the config for the user who has to confirm it. */
import { printable } from '../../base/printable.ts'
import type { Proposal } from '../../config/proposal.ts'
import type { Difference } from '../../policy/diff/difference.ts'
import type { Paint } from './colour.ts'

/** Line numbers are shown only for this file, because the user reviews this one. */
const PROPOSED = '/.pen/config.json'

/** The maximum size of a config document. */
const LONGEST = 65_536

const SIGNS = { added: '+', removed: '-', changed: '~' } as const

/** What a wider value means, by the start of the key. The subject is the sandbox. */
const WIDER: readonly (readonly [string, string])[] = [
  ['files.read', 'it can read or write more files'],
  ['files.write', 'it can write more files'],
  ['files.deny', 'it can open files that were hidden'],
  ['files.protect', 'it can write files that your machine may run'],
  ['network.deny', 'it can reach hosts that were denied'],
  ['network.offline', 'it gets a network'],
  ['network.mode', 'it gets wider network access'],
  ['network.ask', 'it can make pen ask you'],
  ['network.hold', 'refused connections wait longer'],
  ['network.idle', 'idle connections stay open longer'],
  ['network.upstreamProxy', 'its traffic takes another route'],
  ['network.', 'it can reach more hosts'],
  ['exec.', 'one command can use more'],
  ['limits.', 'it can use more resources'],
  ['env', 'its programs get this variable'],
  ['mounts', 'it sees more of the host'],
  ['image', 'it uses another image'],
  ['tools.', 'it can run more programs'],
  ['isolation', 'weaker isolation is enough'],
  ['backend', 'another backend isolates it'],
  ['workspace', 'it writes to the project itself, without your review'],
  ['runtime', 'another runtime isolates it'],
  ['user', 'it runs as another user'],
  ['git.identity', 'its commits carry your name and e-mail address'],
  ['vm.root', 'its commands are root of the virtual machine'],
  ['ssh.agent.keys', 'it can sign with this key of yours'],
  ['ssh.agent.hosts', 'it can log in to this server with your keys'],
  ['ssh.agent.sign', 'it can make these signatures with your keys'],
  ['acceptGaps', 'it runs without this protection'],
  ['ports', 'programs of this machine can connect to it'],
  ['profile', 'it starts from a wider profile'],
]

/** Undefined for a difference that does not widen permissions. */
const wideningWords = ({ key, widens }: Difference): string | undefined =>
  widens ? (WIDER.find(([start]) => key.startsWith(start))?.[1] ?? 'it can do more') : undefined

export function proposalText({ differences, elsewhere, digest }: Proposal, paint: Paint): string {
  const line = (difference: Difference, when = ''): string => {
    const { key, change, item, was, source } = difference
    const from = source?.place?.file.endsWith(PROPOSED) ? `  (${PROPOSED.slice(1)}:${source.place.line})` : ''
    // Never truncated: the user confirms only what was shown.
    const value = `${was === undefined ? '' : `${printable(was, LONGEST)} → `}${printable(item, LONGEST)}`
    const words = wideningWords(difference)
    const text = `${SIGNS[change]} ${key} ${value}${from}`
    if (words === undefined) return `  ${text}`
    return `${paint('red', `! ${text}`)}\n      ${paint('bold', 'WIDENS')}: ${words}${when}`
  }
  const widening = differences.filter(({ widens }) => widens).length + elsewhere.length
  // Widening changes come last, next to the question.
  const [others, wider] = [false, true].map(widens => differences.filter(one => one.widens === widens))
  return [
    ...[...(others ?? []), ...(wider ?? [])].map(difference => line(difference)),
    ...elsewhere.map(({ profile, difference }) => line(difference, `, when run with --profile ${profile}`)),
    ...(differences.length + elsewhere.length === 0
      ? ['the text differs, but the permissions are the same']
      : [
          widening === 0
            ? 'no change widens permissions'
            : paint('red', `${widening} ${widening === 1 ? 'change widens' : 'changes widen'} permissions`),
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
  /** Set if the difference applies only with this --profile. */
  profile,
})
