/**
 * The note that explains the sandbox to an agent, made from the policy. It is placed where agents look for instructions, in
 * directories that only the sandbox has. It is never in the project and never covers a mounted file.
 */
import { dirname } from '../base/posix-path.ts'
import { printable } from '../base/printable.ts'
import { showDeny } from '../policy/files/decide-file.ts'
import { type GuestPath, isWithin } from '../policy/files/path.ts'
import { printRule } from '../policy/network/net-rule.ts'
import type { Policy } from '../policy/policy.ts'
import { NOTE_PATH, SANDBOX_HOME } from '../policy/profile.ts'
import type { HostFacts } from './facts.ts'
import type { Step } from './plan.ts'

/** In characters: the whole list, and one item. */
const LIST_BUDGET = 1000
const ITEM_LIMIT = 200

/** Bounded and without secrets: it contains host names and paths, no values. */
export function agentNote(policy: Policy): string {
  const { files, network, mounts } = policy
  const write = files.write.map(({ rule }) => rule.path as string)
  const read = files.read.map(({ rule }) => rule.path as string).filter(path => !write.includes(path))
  const volumes = mounts.flatMap(({ rule }) => (rule.kind === 'volume' ? [rule.at as string] : []))
  return `# You are in a sandbox

pen runs this program in a sandbox. A policy on the host decides what is open, and nothing in here can change it.

- You may write: ${list(write)}. Also ${list([SANDBOX_HOME, '/tmp'])}, which are removed when the sandbox ends${volumes.length === 0 ? '' : `, except ${list(volumes)}`}.
- You may read: ${read.length === 0 ? '' : `${list(read)}, and `}the programs of the system. The user's home and other projects are not here.
- Hidden, though their names may show: ${list(files.deny.map(({ rule }) => showDeny(rule)))}.
- Read-only in the project: git hooks and settings, editor tasks, settings of agents, \`.pen\`. So \`git config\`, \`git remote add\`, \`git branch -m\`,
  \`git push -u\` and \`git checkout --track\` end in "could not write config file": leave out the tracking, or ask the user to run them outside.
- Make git worktrees below the project: beside it they fail, or are removed when the sandbox ends.
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

Inside, only \`pen files\` works. The user can open more at the next start, with \`--read PATH\`, \`--write PATH\` and \`--allow HOST:PORT\`.
This note describes the policy at the start. It may have changed since.
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

/** Paths and patterns may contain anything, so they are escaped and printed as code. */
function list(items: readonly string[]): string {
  if (items.length === 0) return 'nothing'
  const shown: string[] = []
  for (let room = LIST_BUDGET; shown.length < items.length && room > 0; room -= shown.at(-1)?.length ?? 0)
    shown.push(`\`${printable(items[shown.length] ?? '', ITEM_LIMIT).replaceAll('`', '\\x60')}\``)
  return [...shown, ...(shown.length < items.length ? [`${items.length - shown.length} more`] : [])].join(
    ', ',
  )
}

/** Paths below the home at which agents look for global instructions. */
const IN_HOME = ['CLAUDE.md', '.codex/AGENTS.md', '.gemini/GEMINI.md', '.config/opencode/AGENTS.md']
const ABOVE = ['AGENTS.md', 'CLAUDE.md']

/** The note and links to it. `others` are the existing steps: the note never covers what they show. */
export function noteSteps(
  { note }: Pick<HostFacts, 'note'>,
  workspace: string,
  others: readonly Step[],
  image: boolean,
): Step[] {
  if (note === undefined) return []
  const above = dirname(workspace)
  const fits = (place: string): boolean => isPrivate(dirname(place), others)
  // Claude Code reads these files in every directory above the project, except the root.
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
    { op: 'bind', from: note.file, at, mode: 'ro', why: 'the note for agents' },
    ...links.map(place => ({ op: 'link', at: place as GuestPath, to: NOTE_PATH }) as const),
  ]
}

/** An engine mounts each file separately, and the agent cannot write in directories that the engine makes for that. */
const isShallow = (place: string): boolean => !isWithin(dirname(dirname(place)), SANDBOX_HOME)

/** Whether the directory belongs to the sandbox alone and shows nothing of the host. */
function isPrivate(directory: string, steps: readonly Step[]): boolean {
  let innermost: Step | undefined
  for (const step of steps)
    if (step.op !== 'seal' && isWithin(directory, step.at) && step.at.length >= (innermost?.at.length ?? 0))
      innermost = step
  return innermost === undefined || innermost.op === 'tmpfs'
}
