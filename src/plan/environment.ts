/** The environment inside: an allowlist. No host variable is passed unless the policy names it. */
import { COMMAND_LINE } from '../policy/compile.ts'
import { variablesOf } from '../policy/network/secret.ts'
import type { Policy } from '../policy/policy.ts'
import { AGENT_HOSTS, AGENT_SOCKET, CACHE_VOLUME, GIT_CONFIG_PATH, SANDBOX_HOME } from '../policy/profile.ts'
import { showSource } from '../policy/source.ts'
import type { HostFacts } from './facts.ts'
import type { Variable } from './plan.ts'

/** Terminal and locale variables. They make output readable and say nothing about the user. */
export const PASSED_VARIABLES = [
  'TERM',
  'COLORTERM',
  'LANG',
  'LANGUAGE',
  'LC_ALL',
  'LC_CTYPE',
  'LC_MESSAGES',
  'LC_COLLATE',
  'NO_COLOR',
  'FORCE_COLOR',
  'TZ',
]

/** A value that is only a name: it can pass no escape sequence and no path traversal to a program. */
const PLAIN = /^[A-Za-z0-9_.:@+,/-]{0,128}$/
const PLAIN_LIST = /^[A-Za-z0-9_.:@+,/ =-]{0,1024}$/

/** Variables that hold a preference or a path, never a secret. */
const HARMLESS = new Set([
  ...PASSED_VARIABLES,
  'CI',
  'EDITOR',
  'GIT_EDITOR',
  'GIT_PAGER',
  'HOME',
  'LESS',
  'NODE_ENV',
  'PAGER',
  'PATH',
  'PYTHONDONTWRITEBYTECODE',
  'PYTHONUNBUFFERED',
  'RUST_BACKTRACE',
  'RUST_LOG',
  'SHELL',
  'TMPDIR',
  'USER',
  'VISUAL',
])

/** Whether a value may be printed. Checks both the name and the value, because a token can be in any variable. */
export const isHarmless = (name: string, value: string): boolean =>
  HARMLESS.has(name) && PLAIN_LIST.test(value) && !/[A-Za-z0-9_-]{32}/.test(value)

/** A refusal is final, but npm and pnpm retry after ten seconds and again after a minute. */
const NPM_RETRY = [
  ['npm_config_fetch_retry_mintimeout', '1000'],
  ['npm_config_fetch_retry_factor', '4'],
] as const

/** Where an image finds the host's certificate authorities. */
export const AUTHORITIES_PATH = '/etc/pen/ca-certificates.crt'

/**
 * Node.js adds this bundle to its own list. With the host's system, all other programs read the host's bundle by default. In an
 * image each library needs its own variable: OpenSSL (curl, Python, Go), requests and pip, git.
 */
const AUTHORITY_VARIABLES = {
  host: ['NODE_EXTRA_CA_CERTS'],
  image: ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'CURL_CA_BUNDLE', 'REQUESTS_CA_BUNDLE', 'GIT_SSL_CAINFO'],
} as const

/** A document may name a variable that only another machine sets. The program inside may need it, so the user reads of it. */
export const unsetVariables = (policy: Policy, facts: HostFacts): string[] =>
  [...policy.env].flatMap(([name, { value, source }]) =>
    value.kind === 'host' && !facts.env.has(name) && !keptOutside(policy).includes(name)
      ? [`${name} is passed on by ${showSource(source)}, and is not set here; fix: export ${name}=…`]
      : [],
  )

/**
 * Variables that would show a secret, in every mode of the network: those of its name, and the host's that it is read from. With the
 * gateway, a placeholder takes the name. A key that the user exposes on the command line is no secret of the policy.
 */
const keptOutside = ({ network, env }: Policy): string[] =>
  network.secrets.flatMap(({ rule }) => {
    const { name, from } = rule
    const isAsked = (variable: string): boolean => {
      const passed = env.get(variable)
      return passed?.value.kind !== 'host' || passed.source.layer === COMMAND_LINE
    }
    const read = from.kind === 'env' ? variablesOf(rule, from.variable) : []
    return [...variablesOf(rule, name), ...read.filter(variable => !isAsked(variable))]
  })

export const USER_NAME = 'agent'

/** Sets no PATH and SHELL for an image, which has its own. */
export function buildEnvironment(policy: Policy, facts: HostFacts, image = false): Variable[] {
  const out = new Map<string, Variable>()
  const set = (name: string, value: string, secret = false) => out.set(name, { name, value, secret })
  for (const name of PASSED_VARIABLES) {
    const value = facts.env.get(name)
    if (value !== undefined && PLAIN.test(value) && !value.includes('..')) set(name, value)
  }
  if (!out.has('LANG') && !out.has('LC_ALL')) set('LANG', 'C.UTF-8')
  if (!image) set('PATH', facts.path.join(':'))
  set('HOME', SANDBOX_HOME)
  set('USER', USER_NAME)
  set('LOGNAME', USER_NAME)
  if (!image) set('SHELL', facts.shell)
  set('TMPDIR', '/tmp')
  for (const [name, value] of facts.toolchains) set(name, value)
  if (policy.mounts.some(({ rule }) => rule.kind === 'volume' && rule.volume === CACHE_VOLUME)) {
    set('XDG_CACHE_HOME', `${SANDBOX_HOME}/.cache`)
    set('npm_config_cache', `${SANDBOX_HOME}/.cache/npm`)
  }
  for (const [name, value] of NPM_RETRY) set(name, value)
  for (const name of facts.authorities === undefined ? [] : AUTHORITY_VARIABLES[image ? 'image' : 'host'])
    set(name, image ? AUTHORITIES_PATH : (facts.authorities ?? ''))
  for (const { name, value } of policy.packages.env) set(name, value)
  if (facts.gitIdentity !== undefined) set('GIT_CONFIG_SYSTEM', GIT_CONFIG_PATH)
  if (policy.sshAgent.keys.length > 0) {
    set('SSH_AUTH_SOCK', AGENT_SOCKET)
    set('GIT_SSH_COMMAND', `ssh -o GlobalKnownHostsFile=${AGENT_HOSTS}`)
  }
  for (const [name, { value }] of policy.env) {
    const text = value.kind === 'text' ? value.text : facts.env.get(name)
    if (text !== undefined) set(name, text, !isHarmless(name, text))
  }
  for (const name of keptOutside(policy)) out.delete(name)
  set('AGENT_IN_SANDBOX', '1')
  return [...out.values()]
}
