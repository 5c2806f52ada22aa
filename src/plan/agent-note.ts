/**
 * What an agent is told about the place it is in, made from the policy. It stands where agents look for instructions, in
 * directories that only the sandbox has: never in the project, and never over a file that somebody mounted.
 */
import { printable } from '../base/printable.ts'
import { showDeny } from '../policy/files/decide-file.ts'
import { type GuestPath, isWithin } from '../policy/files/path.ts'
import { printRule } from '../policy/network/net-rule.ts'
import type { Policy } from '../policy/policy.ts'
import { NOTE_PATH, SANDBOX_HOME } from '../policy/profile.ts'
import type { HostFacts } from './facts.ts'
import type { Step } from './plan.ts'

/** Characters, of a list and of one item in it. */
const LIST_BUDGET = 1000
const ITEM_LIMIT = 200

/** Bounded, and without a secret: names of hosts and paths, no values. */
export function agentNote(policy: Policy): string {
  const { files, network, mounts } = policy
  const write = files.write.map(({ rule }) => rule.path as string)
  const read = files.read.map(({ rule }) => rule.path as string).filter(path => !write.includes(path))
  const volumes = mounts.flatMap(({ rule }) => (rule.kind === 'volume' ? [rule.at as string] : []))
  return `# You are in a sandbox

pen runs this program in a sandbox. A policy on the host decides what is open, and nothing in here can change it.

- You may write: ${list(write)}. Also ${list([SANDBOX_HOME, '/tmp'])}, which are gone when the sandbox ends${volumes.length === 0 ? '' : `, but for ${list(volumes)}`}.
- You may read: ${read.length === 0 ? '' : `${list(read)}, and `}the programs of the system. The user's home and other projects are not here.
- Hidden, though their names may show: ${list(files.deny.map(({ rule }) => showDeny(rule)))}.
- Read-only in the project: git hooks and settings, editor tasks, settings of agents, \`.pen\`. So \`git config\`, \`git remote add\`, \`git branch -m\`,
  \`git push -u\` and \`git checkout --track\` end in "could not write config file": leave out the tracking, or ask the user to run them outside.
- Make git worktrees below the project: beside it they fail, or are gone when the sandbox ends.
- Network: ${reachable(network)}

## When something is refused

A refused connection ends at once: HTTP with status 403 and the header \`x-pen-denied\`, TLS with \`access_denied\`, others with a reset.
Another port, mirror, proxy or address will be refused too, so do not look for a way around. Say what you need and why, and ask the user to run, outside:

    pen allow HOST:PORT     # takes effect here within a second
    pen logs                # what was refused, and what would allow it
    pen grant PATH          # a file or directory of the host, for \`/run/pen/pen files cat PATH\` in here

"No permissions to create a new namespace" (bubblewrap), or "the kernel does not allow non-privileged user namespaces": a program tried to start a sandbox
of its own, and none can start in this one. The command itself is not refused. Switch that sandbox off and run it again: Codex \`--sandbox danger-full-access\`,
Claude Code \`"sandbox": {"enabled": false}\` in its settings, Gemini CLI \`SANDBOX=pen\`, Chromium \`--no-sandbox\`.

Of pen itself only \`pen files\` works in here. More can be opened at the next start, with \`--read PATH\`, \`--write PATH\` and \`--allow HOST:PORT\`.
This text tells what was open at the start; it may be more, or less, by now.
`
}

function reachable(network: Policy['network']): string {
  if (network.offline || network.mode === 'none')
    return 'none. No host can be reached, and no rule can change that while this runs.'
  const hosts = network.allow.map(({ rule }) => printRule(rule))
  const others =
    network.ask === 'hold'
      ? 'For everything else the user is asked: a connection may wait.'
      : 'Everything else is refused.'
  return `${hosts.length === 0 ? 'no host yet' : list(hosts)}. ${others}`
}

/** Paths and patterns may hold anything: they stand as code, and cannot end it. */
function list(items: readonly string[]): string {
  if (items.length === 0) return 'nothing'
  const shown: string[] = []
  for (let room = LIST_BUDGET; shown.length < items.length && room > 0; room -= shown.at(-1)?.length ?? 0)
    shown.push(`\`${printable(items[shown.length] ?? '', ITEM_LIMIT).replaceAll('`', '\\x60')}\``)
  return [...shown, ...(shown.length < items.length ? [`${items.length - shown.length} more`] : [])].join(
    ', ',
  )
}

/** What each agent calls the instructions that hold everywhere, below its home. */
const IN_HOME = ['CLAUDE.md', '.codex/AGENTS.md', '.gemini/GEMINI.md', '.config/opencode/AGENTS.md']
const ABOVE = ['AGENTS.md', 'CLAUDE.md']

/** The note, and links to it. `others` are the steps that stand already: where they show something, the note is not put. */
export function noteSteps(
  { note }: Pick<HostFacts, 'note'>,
  workspace: string,
  others: readonly Step[],
  image: boolean,
): Step[] {
  if (note === undefined) return []
  const above = parent(workspace)
  const fits = (place: string): boolean => isPrivate(parent(place), others)
  // Claude Code reads such files in every directory above the project but the root.
  const isAbove = above !== '/' && fits(`${above}/CLAUDE.md`)
  const places = [
    ...(isAbove ? ABOVE.map(name => `${above}/${name}`) : [`${SANDBOX_HOME}/.claude/CLAUDE.md`]),
    ...IN_HOME.map(name => `${SANDBOX_HOME}/${name}`),
  ]
  const links = [...new Set(places)].filter(place => place !== NOTE_PATH && fits(place))
  if (!fits(NOTE_PATH)) return []
  const at = NOTE_PATH as GuestPath
  if (image)
    return [at, ...links.filter(isShallow)].map(
      place => ({ op: 'file', at: place as GuestPath, text: note.text }) as const,
    )
  return [
    { op: 'bind', from: note.file, at, mode: 'ro', why: 'what agents are told' },
    ...links.map(place => ({ op: 'link', at: place as GuestPath, to: NOTE_PATH }) as const),
  ]
}

/** An engine mounts files one by one, and a directory that it makes on the way is not the agent's to write in. */
const isShallow = (place: string): boolean => !isWithin(parent(parent(place)), SANDBOX_HOME)

/** Whether a directory is the sandbox's own: nothing of the host's is shown there. */
function isPrivate(directory: string, steps: readonly Step[]): boolean {
  let innermost: Step | undefined
  for (const step of steps)
    if (step.op !== 'seal' && isWithin(directory, step.at) && step.at.length >= (innermost?.at.length ?? 0))
      innermost = step
  return innermost === undefined || innermost.op === 'tmpfs'
}

const parent = (path: string): string => path.slice(0, path.lastIndexOf('/')) || '/'
