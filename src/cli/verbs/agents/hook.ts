import { EXIT, PenError } from '../../../base/error.ts'
import { nearest } from '../../../base/nearest.ts'
import { printable, visible } from '../../../base/printable.ts'
import { findProject } from '../../../config/project.ts'
import { HOOKED_AGENTS, type HookedName, isHookedName, type Scope } from '../../../hooks/agents.ts'
import { fullPath } from '../../../hooks/hook-file.ts'
import {
  type Change,
  type HookRecord,
  installHook,
  planHook,
  readRecords,
  removeHooks,
} from '../../../hooks/install.ts'
import { canAsk, confirm } from '../../frame/ask.ts'
import { defineVerb } from '../../frame/verb.ts'

const agents = Object.keys(HOOKED_AGENTS) as readonly HookedName[]

export const verb = defineVerb({
  name: 'hook',
  summary: "Send a host agent's commands into the sandbox",
  details:
    "For an agent that you start on the host, without pen. Its own hook then rewrites each shell command to pen exec, and limits its file tools to what the project's policy allows. pen shows the change of the agent's settings and asks before it writes. Without an agent, lists the installed hooks. The agent itself, its MCP servers and its web tools stay on the host; pen agent confines all of it.",
  flags: {
    project: { kind: 'boolean', about: 'for this project alone (the default)' },
    user: { kind: 'boolean', about: 'for all your projects' },
    remove: { kind: 'boolean', about: "restore the agent's settings: of this project, and your own" },
    yes: { kind: 'boolean', about: 'do not ask for confirmation' },
  },
  positionals: { agent: { arity: 'optional', about: agents.join(', ') } },
  examples: {
    'pen hook': 'list the installed hooks',
    'pen hook claude-code': 'show the change, and ask',
    'pen hook codex --user --yes': 'for all projects, without asking',
    'pen hook --remove': 'restore the settings',
  },
  async run({ flags, positionals, terminal, answer }) {
    if (flags.project && flags.user)
      throw new PenError('USAGE', {
        what: '--project and --user cannot be combined',
        hint: 'remove one of them',
      })
    const { agent } = positionals
    if (agent !== undefined && !isHookedName(agent)) throw unknownAgent(agent)
    if (flags.remove) {
      const { workspace } = findProject().world
      const scopes: readonly Scope[] = flags.user
        ? ['user']
        : flags.project
          ? ['project']
          : ['project', 'user']
      const { removed, left } = await removeHooks(
        record =>
          (agent === undefined || record.agent === agent) &&
          scopes.includes(record.scope) &&
          (record.scope === 'user' || record.root === workspace),
      )
      answer({ version: 1, removed: removed.map(asData), left: left.map(asError) }, [
        ...(removed.length + left.length === 0 ? ['no hook is installed here'] : []),
        ...removed.map(record => `restored ${printable(fullPath(record), 4096)}`),
        ...left.map(
          ({ message, at, hint }) => `left ${printable(String(at), 4096)}: ${message}; fix: ${hint ?? ''}`,
        ),
      ])
      return left.length === 0 ? EXIT.ok : EXIT.failed
    }
    if (agent === undefined) {
      const records = readRecords()
      answer({ version: 1, agents, installed: records.map(asData) }, [
        ...records.map(asLine),
        ...(records.length === 0 ? [`no hook is installed; pen hook ${agents.join('|')} installs one`] : []),
      ])
      return EXIT.ok
    }
    const scope = flags.user ? 'user' : 'project'
    const { title, notes, movedBy, only } = HOOKED_AGENTS[agent]
    if (only !== undefined && scope !== only.scope)
      throw new PenError('USAGE', {
        what: only.why,
        at: `--${scope}`,
        hint: `pen hook ${agent} --${only.scope}`,
      })
    if (scope === 'user' && process.env[movedBy])
      throw new PenError('USAGE', {
        what: `${movedBy} moves the settings of ${title}`,
        at: '--user',
        hint: `pen hook ${agent} in each project`,
      })
    const changes = planHook(agent, scope, findProject().world.workspace)
    const shown = [
      ...changes.flatMap(asText),
      ...notes.map(note => `note: ${note}`),
      ...changes.flatMap(({ others }) =>
        others === 0
          ? []
          : [`note: ${others} other hooks see the same calls; the last one that rewrites a command wins`],
      ),
    ]
    if (!flags.yes) {
      if (flags.json || !canAsk())
        throw new PenError('USAGE', {
          what: 'pen hook asks for confirmation, and there is no terminal to ask on',
          hint: `pen hook ${agent} --${scope} --yes`,
        })
      for (const line of shown) terminal.note(line)
      if (!confirm(`Install the hook for ${title}?`, terminal)) {
        terminal.note('nothing was changed')
        return EXIT.failed
      }
    }
    await installHook(agent, scope, changes)
    const files = changes.map(({ place }) => fullPath(place))
    answer({ version: 1, agent, scope, files, notes }, [
      ...(flags.yes ? shown : []),
      `installed: shell commands of ${title} run in the sandbox; pen hook --remove restores the settings`,
    ])
    return EXIT.ok
  },
})

function unknownAgent(name: string): PenError {
  const meant = nearest(name, agents)
  return new PenError('USAGE', {
    what: `pen knows no hook for "${printable(name, 64)}"`,
    at: 'agent',
    hint: `${meant === undefined ? `one of ${agents.join(', ')}` : `pen hook ${meant}`}; other agents can use pen mcp`,
  })
}

const asData = ({ agent, scope, ...record }: HookRecord) => ({ agent, scope, file: fullPath(record) })
const asLine = (record: HookRecord): string =>
  `${record.agent} (${record.scope}): ${printable(fullPath(record), 4096)}`
const asError = ({ message, at, hint }: PenError) => ({ what: message, at: String(at), hint })

const asText = ({ place, before, inserted }: Change): string[] => [
  `${before === undefined ? 'new file' : 'change'}: ${printable(fullPath(place), 4096)}`,
  ...inserted
    .split('\n')
    .filter(line => line.trim() !== '')
    .map(line => `  + ${visible(line)}`),
]
