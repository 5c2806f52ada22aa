/** Verdicts as text: the verdict, the reason, the deciding rule with its file and line, and what would change it. */
import { decideFile, type FileAccess, type FileVerdict } from './files/decide-file.ts'
import type { HostPath } from './files/path.ts'
import { parseAddress } from './network/address.ts'
import { type ConnectionVerdict, decideConnection } from './network/decide-connection.ts'
import { decideRequest, type RequestVerdict } from './network/decide-request.ts'
import { parseHost } from './network/host.ts'
import { type DenyRule, printRule } from './network/net-rule.ts'
import { type Port, parsePort } from './network/port.ts'
import { readRequestPath } from './network/request-path.ts'
import type { Policy } from './policy.ts'
import { type Parsed, refuse, type Source, type Sourced } from './source.ts'

export interface Explanation {
  readonly subject: string
  readonly verdict: 'allowed' | 'denied'
  /** A stable identifier of the denial. */
  readonly reason: string | null
  readonly why: string
  readonly rule: string | null
  readonly source: {
    readonly layer: string
    readonly file: string | null
    readonly line: number | null
  } | null
  readonly fix: string | null
}

/**
 * Accepts `host:port`, `host` (port 443), `ip:port` or `[ipv6]:port`, and a request: `GET host/path`. The text is a
 * question of the user, not a rule.
 */
export function explainConnection(policy: Policy, text: string): Parsed<Explanation> {
  const asked = REQUEST.exec(text)
  const [, method = 'GET', endpoint = text, path] = asked ?? []
  const target = parseQuestion(endpoint)
  if (!target.ok) return target
  const { to, port, shown } = target.value
  const verdict = decideConnection(policy.network.index, to, port)
  if (asked === null) return { ok: true, value: explainWhole(shown, verdict) }
  const line = readRequestPath(path ?? '/')
  if (!line.ok) return line
  const subject = `${method} ${shown}${line.value.exact}`
  const judged = verdict.ok ? decideRequest(verdict, { method, ...line.value }) : verdict
  return { ok: true, value: asExplanation(subject, judged) }
}

/** `GET host:port/path`, `GET host` or `host/path`. */
const REQUEST = /^(?:([A-Z][A-Z-]*) +(?=\S))?([^/\s]+)(\/\S*)?$(?<=[ /].*)/s

function explainWhole(shown: string, verdict: ConnectionVerdict): Explanation {
  const explanation = asExplanation(shown, verdict)
  if (!verdict.ok || verdict.requests === undefined) return explanation
  const { allow, deny, whole } = verdict.requests
  const texts = (rules: readonly Sourced<DenyRule>[]): string =>
    rules.map(({ rule }) => printRule(rule)).join(', ')
  const why = whole
    ? `every request is allowed, except ${texts(deny)}`
    : `only these requests are allowed: ${texts(allow)}${deny.length === 0 ? '' : `, except ${texts(deny)}`}`
  return { ...explanation, why }
}

export function explainFile(policy: Policy, path: HostPath, access: FileAccess): Explanation {
  return asExplanation(`${access} ${path}`, decideFile(policy, path, access))
}

type Question = {
  readonly to: Parameters<typeof decideConnection>[1]
  readonly port: Port
  readonly shown: string
}

export function parseQuestion(text: string): Parsed<Question> {
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::(.*))?$/s.exec(text)
  if (match === null) return refuse('not a host and port', 'write it as registry.example.com:443')
  const [, bracketed, plain = '', portText = '443'] = match
  const port = parsePort(portText)
  if (!port.ok) return port
  const address = parseAddress(bracketed ?? plain)
  if (address.ok && (bracketed !== undefined) === address.value.includes(':'))
    return {
      ok: true,
      value: {
        to: { address: address.value },
        port: port.value,
        shown: `${text.slice(0, text.length - (match[3]?.length ?? -1) - 1)}:${port.value}`,
      },
    }
  if (bracketed !== undefined)
    return refuse('only an IPv6 address has brackets', 'write it as [2001:db8::7]:443')
  const host = parseHost(plain)
  if (!host.ok) return host
  return {
    ok: true,
    value: { to: { name: host.value }, port: port.value, shown: `${host.value}:${port.value}` },
  }
}

function asExplanation(
  subject: string,
  verdict: ConnectionVerdict | RequestVerdict | FileVerdict,
): Explanation {
  const rule =
    typeof verdict.rule === 'string' || verdict.rule === undefined ? verdict.rule : printRule(verdict.rule)
  return {
    subject,
    verdict: verdict.ok ? 'allowed' : 'denied',
    reason: verdict.ok ? null : verdict.reason,
    why: verdict.ok ? `${rule ?? 'a rule'} grants it` : verdict.why,
    rule: rule ?? null,
    source: verdict.source === undefined ? null : shownSource(verdict.source),
    fix: verdict.ok ? null : verdict.fix,
  }
}

const shownSource = (source: Source) => ({
  layer: source.layer,
  file: source.place?.file ?? null,
  line: source.place?.line ?? null,
})

export function explanationText(explanation: Explanation): string {
  const { source } = explanation
  const lines = [`${explanation.verdict}: ${explanation.subject}`, `  why:  ${explanation.why}`]
  if (explanation.rule !== null) lines.push(`  rule: ${explanation.rule}`)
  if (source !== null) {
    const line = source.line === null ? '' : `:${source.line}`
    lines.push(`  from: ${source.layer}${source.file === null ? '' : ` (${source.file}${line})`}`)
  }
  if (explanation.fix !== null) lines.push(`  fix: ${explanation.fix}`)
  return lines.join('\n')
}
