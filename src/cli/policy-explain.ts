import { resolve } from 'node:path'
import { EXIT, PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { loadPolicy } from '../config/load.ts'
import { findProject, type Project } from '../config/project.ts'
import { type Explanation, explainConnection, explainFile, explanationText } from '../policy/explain.ts'
import { absolute, type HostPath } from '../policy/path.ts'
import type { Policy } from '../policy/policy.ts'
import { defineFlags, jsonFlag } from './flag-spec.ts'
import { flagDocument, policyFlags } from './policy-flags.ts'
import { defineVerb } from './verb.ts'

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
    'A subject that starts with ".", "/" or "~" is a file; anything else is a host with a port (443 if absent), or an address with a port. Exit code 0 means allowed, 1 denied.',
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
    const project = await findProject()
    const loaded = await loadPolicy(project, {
      flags: flagDocument({ ...flags, read: [], write: [] }, project),
      allowUserExpansion: flags['allow-user-expansion'],
    })
    const access = flags.write ? 'write' : 'read'
    const explanation = /^[./~]/.test(positionals.subject)
      ? explainFile(loaded.policy, filePath(positionals.subject, project), access)
      : connection(loaded.policy, positionals.subject)
    if (flags.json) terminal.printJson(explanation)
    else terminal.print(printableLines(explanationText(explanation)))
    return explanation.verdict === 'allowed' ? EXIT.ok : EXIT.failed
  },
})

const printableLines = (text: string): string =>
  text
    .split('\n')
    .map(line => printable(line, 4096))
    .join('\n')

function filePath(text: string, project: Project): HostPath {
  const named = absolute(
    text.startsWith('/') || text.startsWith('~') ? text : resolve(project.cwd, text),
    project.world,
  )
  if (!named.ok)
    throw new PenError('USAGE', {
      what: `${text}: ${named.why}`,
      ...(named.cure === undefined ? {} : { hint: named.cure }),
    })
  return project.world.locate(named.value).real as HostPath
}

function connection(policy: Policy, text: string): Explanation {
  const explained = explainConnection(policy, text)
  if (!explained.ok)
    throw new PenError('USAGE', {
      what: `"${text}": ${explained.why}`,
      hint: explained.cure ?? 'write it as registry.example.com:443',
    })
  return explained.value
}
