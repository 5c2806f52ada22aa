import { EXIT, PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { type Loaded, loadPolicy, ownPolicy } from '../../../config/load.ts'
import { type Explanation, explainConnection, explanationText } from '../../../policy/explain.ts'
import { explainPath } from '../../../policy/explain-path.ts'
import type { FileAccess } from '../../../policy/files/decide-file.ts'
import { isWithin } from '../../../policy/files/path.ts'
import type { Policy } from '../../../policy/policy.ts'
import { systemEntries } from '../../../survey/survey.ts'
import { defineFlags } from '../../frame/flag-spec.ts'
import { loadOptions, policyFlags } from '../../frame/policy-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

/** Here `--read` and `--write` choose the question. In verbs that run something they grant access. */
const { read: _read, write: _write, ...otherFlags } = policyFlags

const askFlags = defineFlags({
  read: { kind: 'boolean', about: 'ask whether the file may be read (the default)' },
  write: { kind: 'boolean', about: 'ask whether the file may be written' },
})

export const verb = defineVerb({
  name: 'policy explain',
  summary: 'Show which rule allows or denies a host or a file',
  details:
    'A subject is a file if it starts with "/", "./", "../" or "~", is a name such as .env, or comes with --read or --write. Anything else is a host or an address with a port (default 443). Exit code 0 means allowed, 1 denied.',
  flags: { ...otherFlags, ...askFlags },
  positionals: { subject: { arity: 'one', about: 'host:port, ip:port or a path' } },
  examples: {
    'pen policy explain registry.example.com:443': 'can the sandbox connect to this host?',
    'pen policy explain ./src/x.ts --write': 'can it write this file?',
    'pen policy explain --profile strict ~/.ssh/id_ed25519 --json': 'print JSON',
  },
  async run({ flags, positionals, project, answer }) {
    if (flags.read && flags.write)
      throw new PenError('USAGE', {
        what: '--read and --write cannot be combined',
        hint: 'remove one of them',
      })
    const loaded = await loadPolicy(project, {
      ...loadOptions({ ...flags, read: [], write: [] }, project),
      grants: 'shown',
    })
    const access = flags.write ? 'write' : 'read'
    const explain = (policy: Policy) =>
      flags.read || flags.write || FILE.test(positionals.subject)
        ? explainPath(policy, positionals.subject, access, project)
        : connection(policy, positionals.subject)
    const explanation = await explainSystemFile(await nameRestrictingLayer(explain, loaded), access, loaded)
    answer(explanation, explanationText(inOneLine(explanation)))
    return explanation.verdict === 'allowed' ? EXIT.ok : EXIT.failed
  },
})

/** No valid host matches this. A host that starts with a dot or ends in a path is reported as a mistake. */
const FILE = /^(?:[/~]|\.{1,2}(?:\/|$)|\.[^./:]+(?:\/|$))/

/** Escapes each part separately, because a path can contain a line break. */
const inOneLine = (explanation: Explanation): Explanation =>
  JSON.parse(JSON.stringify(explanation), (_key, value: unknown) =>
    typeof value === 'string' ? printable(value, 4096) : value,
  )

/** Names the project's document as the reason if the user's own layers alone would allow the access. */
async function nameRestrictingLayer(
  explain: (policy: Policy) => Explanation,
  loaded: Loaded,
): Promise<Explanation> {
  const explanation = explain(loaded.policy)
  const limit = loaded.merged.layers.find(layer => layer.trust === 'untrusted')
  if (explanation.verdict === 'allowed' || limit === undefined) return explanation
  if (explanation.reason === 'denied-by-rule' || explanation.reason === 'protected') return explanation
  if (explain(await ownPolicy(loaded)).verdict === 'denied') return explanation
  return {
    ...explanation,
    why: `your config allows it, but ${limit.name} restricts it`,
    rule: null,
    source: { layer: limit.name, file: `${loaded.project.world.workspace}/${limit.name}`, line: null },
    fix: `edit ${limit.name} in the project`,
  }
}

/** System programs are readable without a rule: the policy says only which of them can run. */
async function explainSystemFile(
  found: Explanation,
  access: FileAccess,
  loaded: Loaded,
): Promise<Explanation> {
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
    why: 'system programs are readable, not writable',
    rule: entry.path,
    source: { layer: `profile ${policy.profile}`, file: null, line: null },
    fix: access === 'read' ? null : 'change it on the host, outside the sandbox',
  }
}

function connection(policy: Policy, text: string): Explanation {
  const explained = explainConnection(policy, text)
  if (!explained.ok)
    throw new PenError('USAGE', {
      what: `"${text}": ${explained.why}`,
      hint: explained.fix ?? 'pen policy explain registry.example.com:443, or ./src/x.ts for a file',
    })
  return explained.value
}
