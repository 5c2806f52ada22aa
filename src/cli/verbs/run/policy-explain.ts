import { EXIT, PenError } from '../../../base/error.ts'
import { basename, dirname } from '../../../base/posix-path.ts'
import { printable } from '../../../base/printable.ts'
import { type Loaded, loadPolicy, ownPolicy } from '../../../config/load.ts'
import { findProject, type Project } from '../../../config/project.ts'
import { type Explanation, explainConnection, explainFile, explanationText } from '../../../policy/explain.ts'
import type { FileAccess } from '../../../policy/files/decide-file.ts'
import { absolute, type HostPath, isWithin } from '../../../policy/files/path.ts'
import type { Policy } from '../../../policy/policy.ts'
import { systemEntries } from '../../../survey/survey.ts'
import { defineFlags, jsonFlag } from '../../frame/flag-spec.ts'
import { flagDocument, policyFlags } from '../../frame/policy-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

/** Here `--write` asks a question; granting by flag is for verbs that run something. */
const { read: _read, write: _write, ...otherFlags } = policyFlags

const askFlags = defineFlags({
  read: { kind: 'boolean', about: 'ask whether the file may be read (the default)' },
  write: { kind: 'boolean', about: 'ask whether the file may be written' },
})

export const verb = defineVerb({
  name: 'policy explain',
  summary: 'Say whether a connection or a file is allowed, and which rule decided',
  details:
    'A subject that starts with "/", "./", "../" or "~", a name such as .env, and every subject with --read or --write is a file; anything else is a host with a port (443 if absent), or an address with a port. Exit code 0 means allowed, 1 denied.',
  flags: { ...otherFlags, ...askFlags, ...jsonFlag },
  positionals: { subject: { arity: 'one', about: 'host:port, ip:port or a path' } },
  examples: [
    { line: 'pen policy explain registry.example.com:443', does: 'may the sandbox connect there?' },
    { line: 'pen policy explain ./src/x.ts --write', does: 'may it write that file?' },
    { line: 'pen policy explain --profile strict ~/.ssh/id_ed25519 --json', does: 'for a program' },
  ],
  async run({ flags, positionals, terminal }) {
    if (flags.read && flags.write)
      throw new PenError('USAGE', { what: '--read and --write ask two questions', hint: 'ask one at a time' })
    const project = findProject()
    const loaded = await loadPolicy(project, {
      flags: flagDocument({ ...flags, read: [], write: [] }, project),
      allowUserExpansion: flags['allow-user-expansion'],
      offline: flags.offline,
      grants: 'shown',
    })
    const access = flags.write ? 'write' : 'read'
    const explain = (policy: Policy) =>
      flags.read || flags.write || FILE.test(positionals.subject)
        ? file(policy, positionals.subject, access, project)
        : connection(policy, positionals.subject)
    const explanation = await ofSystem(await whoTookIt(explain, loaded), access, loaded)
    if (flags.json) terminal.printJson(explanation)
    else terminal.print(explanationText(inOneLine(explanation)))
    return explanation.verdict === 'allowed' ? EXIT.ok : EXIT.failed
  },
})

/** No host looks like one of these; a host with a dot in front or a path behind is a mistake, and is told as one. */
const FILE = /^(?:[/~]|\.{1,2}(?:\/|$)|\.[^./:]+(?:\/|$))/

/** Each part by itself: a path may hold a line break. */
const inOneLine = (explanation: Explanation): Explanation =>
  JSON.parse(JSON.stringify(explanation), (_key, value: unknown) =>
    typeof value === 'string' ? printable(value, 4096) : value,
  )

/** Where your own layers would have said yes, the project's document is what decided. */
async function whoTookIt(explain: (policy: Policy) => Explanation, loaded: Loaded): Promise<Explanation> {
  const explanation = explain(loaded.policy)
  const limit = loaded.merged.layers.find(layer => layer.trust === 'untrusted')
  if (explanation.verdict === 'allowed' || limit === undefined) return explanation
  if (explanation.reason === 'denied-by-rule' || explanation.reason === 'protected') return explanation
  if (explain(await ownPolicy(loaded)).verdict === 'denied') return explanation
  return {
    ...explanation,
    why: `your own layers grant it, and ${limit.name} takes it away`,
    rule: null,
    source: { layer: limit.name, file: `${loaded.project.world.workspace}/${limit.name}`, line: null },
    fix: `change ${limit.name} in the project: it can only take away`,
  }
}

/** What no rule grants may still be there: the system's own programs, of which the policy says only which may run. */
async function ofSystem(found: Explanation, access: FileAccess, loaded: Loaded): Promise<Explanation> {
  if (found.reason !== 'not-granted') return found
  const { policy, project } = loaded
  const path = found.subject.slice(access.length + 1)
  const entry = systemEntries(policy, project.world.home).find(
    ({ kind, path: top }) => kind === 'tree' && isWithin(path, top),
  )
  const isListed = policy.tools.allow !== 'shown' || !policy.tools.shell
  if (entry === undefined || (isListed && access === 'read')) return found
  return {
    ...found,
    verdict: access === 'read' ? 'allowed' : 'denied',
    reason: access === 'read' ? null : 'read-only',
    why: "the system's programs are shown, for reading",
    rule: entry.path,
    source: { layer: `profile ${policy.profile}`, file: null, line: null },
    fix: access === 'read' ? null : 'change it yourself, outside the sandbox',
  }
}

/** A name and what it leads to are both judged: a rule on the name of a link holds, wherever the link leads. */
function file(policy: Policy, text: string, access: FileAccess, project: Project): Explanation {
  const named = namedPath(text, project)
  const { locate } = project.world
  const ofTarget = explainFile(policy, locate(named).real as HostPath, access)
  const ofName = explainFile(
    policy,
    `${locate(dirname(named)).real}/${basename(named)}`.replace('//', '/') as HostPath,
    access,
  )
  const isRefused = ofName.reason === 'denied-by-rule' || ofName.reason === 'protected'
  return named !== '/' && isRefused ? ofName : ofTarget
}

function namedPath(text: string, project: Project): string {
  // Only what was typed is judged: the directory that it is typed in may have any name.
  const named = absolute(text, { home: project.world.home, workspace: project.cwd })
  if (!named.ok)
    throw new PenError('USAGE', {
      what: `${text}: ${named.why}`,
      ...(named.fix === undefined ? {} : { hint: named.fix }),
    })
  return named.value
}

function connection(policy: Policy, text: string): Explanation {
  const explained = explainConnection(policy, text)
  if (!explained.ok)
    throw new PenError('USAGE', {
      what: `"${text}": ${explained.why}`,
      hint: explained.fix ?? 'write a host as registry.example.com:443, and a file as ./src/x.ts',
    })
  return explained.value
}
