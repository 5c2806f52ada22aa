/**
 * Verdicts on files that the user grants while a sandbox runs, for the file broker and `pen grant`. Here a denial wins
 * over every grant, even a more specific one. No mount protects these files, so this check is the only one.
 */
import { dirname } from '../../base/posix-path.ts'
import { shellWord } from '../../base/printable.ts'
import type { Policy } from '../policy.ts'
import type { FileDenyRule } from '../settings.ts'
import { showSource } from '../source.ts'
import { denialDepth, type FileAccess, showDeny } from './decide-file.ts'
import { checkMountSource, type HostPath, isWithin, type PathWorld } from './path.ts'
import { PROTECTED_PLACES } from './protected-places.ts'

export interface FileGrant {
  readonly path: HostPath
  /** A file is granted by its name: a file that replaces it on the host is granted too. */
  readonly kind: 'file' | 'directory'
  readonly write: boolean
  /** Whether files may be executable. */
  readonly execute: boolean
  /** Milliseconds since 1970. Undefined: until it is revoked. */
  readonly until: number | undefined
  /** The identity of the granted directory, or of the granted file's directory, at the time of the grant. */
  readonly root: DirectoryIdentity
}

interface DirectoryIdentity {
  readonly dev: bigint
  readonly ino: bigint
}

export type GrantDenial = 'not-granted' | 'denied-by-rule' | 'read-only' | 'protected' | 'expired'

type GrantVerdict =
  | { readonly ok: true; readonly grant: FileGrant }
  | {
      readonly ok: false
      readonly reason: GrantDenial
      /** Also sent to the sandbox, so it contains nothing about the host. */
      readonly why: string
      readonly fix?: string
      /** The rule as people write it, and its source: for the user and the audit. */
      readonly rule?: string
      readonly from?: string
    }

type Details = Pick<Extract<GrantVerdict, { ok: false }>, 'fix' | 'rule' | 'from'>

const deny = (reason: GrantDenial, why: string, details: Details = {}): GrantVerdict => ({
  ok: false,
  reason,
  why,
  ...details,
})

export type GrantedPolicy = Pick<Policy, 'files' | 'workspace'> & {
  /** The name of the sandbox, for commands: a grant is for one sandbox. */
  readonly sandbox?: string | undefined
}

/** The directory whose identity is checked. */
export const rootOf = ({ path, kind }: Pick<FileGrant, 'path' | 'kind'>): string =>
  kind === 'directory' ? path : dirname(path)

const covers = (grant: FileGrant, path: string): boolean =>
  grant.kind === 'file' ? path === grant.path : isWithin(path, grant.path)

/** `path` is absolute and normalized. It comes from a sandbox and is otherwise hostile. */
export function decideGrant(
  policy: GrantedPolicy,
  grants: readonly FileGrant[],
  request: { readonly path: string; readonly access: FileAccess; readonly now: number },
): GrantVerdict {
  const { path, access, now } = request
  const held = closedToGrants(policy, path, access)
  if (held !== undefined) return held
  const all = grants.filter(grant => covers(grant, path))
  const live = all.filter(({ until }) => until === undefined || now < until)
  // The most specific sufficient grant decides whether files may be executable.
  const fitting = live
    .filter(grant => access === 'read' || grant.write)
    .sort((a, b) => b.path.length - a.path.length)[0]
  if (fitting !== undefined) return { ok: true, grant: fitting }
  const command = grantCommand(path, access, policy.sandbox)
  const fix = command === undefined ? {} : { fix: command }
  if (live.length > 0) return deny('read-only', 'it is granted for reading only', fix)
  if (all.length > 0) return deny('expired', 'its grant has expired', fix)
  return deny('not-granted', 'no grant covers it, and absence denies', fix)
}

/** Denials that no grant can override. */
function closedToGrants(policy: GrantedPolicy, path: string, access: FileAccess): GrantVerdict | undefined {
  const denial = policy.files.deny.find(({ rule }) => isDenied(rule, path, policy.workspace))
  if (denial !== undefined)
    return deny('denied-by-rule', 'files.deny covers it, and wins over every grant', {
      rule: showDeny(denial.rule),
      from: showSource(denial.source),
    })
  if (access === 'read') return undefined
  if (isWithin(folded(path), folded(policy.workspace)))
    return deny('protected', 'it is in the project, where mounts decide what is writable')
  const guard = protectedPart(path)
  return guard === undefined ? undefined : deny('protected', guard)
}

/** Some file systems ignore case, so a denial covers every spelling of its path. */
const isDenied = (rule: FileDenyRule, path: string, workspace: string): boolean =>
  denialDepth(rule, path, workspace) >= 0 ||
  denialDepth(
    rule.kind === 'path' ? { kind: 'path', path: folded(rule.path) } : rule,
    folded(path),
    folded(workspace),
  ) >= 0

const folded = <T extends string>(path: T): T => path.normalize('NFC').toLowerCase() as T

let protectedPaths: ReadonlyMap<string, string> | undefined

/** The host runs or trusts these files in every project, so no write grant may include them. */
function protectedPart(path: string): string | undefined {
  protectedPaths ??= new Map([
    ...PROTECTED_PLACES.map(place => [place.path.toLowerCase(), place.why] as const),
    ...START_FILES,
  ])
  const names = folded(path).slice(1).split('/')
  if (names.some(name => name.endsWith('.git'))) return 'it is inside a git repository’s own directory'
  // No protected place has more than three components.
  for (let from = 0; from < names.length; from++)
    for (let length = 1; length <= 3 && from + length <= names.length; length++) {
      const why = protectedPaths.get(names.slice(from, from + length).join('/'))
      if (why !== undefined) return why
    }
  return undefined
}

export type Refused = { readonly why: string; readonly fix?: string }

/** Whether the user may grant this path at all. */
export function checkGrantable(
  policy: GrantedPolicy,
  world: PathWorld,
  { path, write }: { readonly path: HostPath; readonly write: boolean },
): Refused | undefined {
  if (path === policy.workspace)
    return {
      why: 'it is the project itself, which the sandbox already sees',
      fix: 'see files.write in docs/policy.md',
    }
  const source = checkMountSource(path, world)
  if (!source.ok) return source
  const held = closedToGrants(policy, path, write ? 'write' : 'read')
  if (held === undefined || held.ok) return undefined
  const fix =
    held.reason === 'denied-by-rule'
      ? `remove ${held.rule} from files.deny of ${held.from}, or copy the file to another place and grant that`
      : isWithin(path, policy.workspace)
        ? 'use files.write in the live config, or pen run --write'
        : 'grant it for reading only, and change it yourself'
  return { why: held.why, fix }
}

/** The command that lets a running sandbox have a file that no rule grants; undefined if none can. */
export function grantFix(
  policy: GrantedPolicy,
  world: PathWorld,
  path: string,
  access: FileAccess,
): string | undefined {
  const refused = checkGrantable(policy, world, { path: path as HostPath, write: access === 'write' })
  if (refused !== undefined) return refused.fix
  const command = grantCommand(path, access, policy.sandbox)
  return command === undefined ? undefined : `${command} --for 1h`
}

/** A command to paste; undefined when the path cannot be quoted. */
export function grantCommand(path: string, access: FileAccess, sandbox?: string): string | undefined {
  const word = shellWord(path)
  const name = sandbox === undefined ? '' : ` --name ${sandbox}`
  return word === undefined ? undefined : `pen grant${name} ${word}${access === 'write' ? ' --rw' : ''}`
}

/**
 * Files that logins, shells, desktops or remote logins run or trust, in addition to PROTECTED_PLACES. A sandbox that can write
 * one runs code on the host. Compared in lower case, in every directory.
 */
const SHELLS = 'a shell runs it when it starts'
const DESKTOP = 'a login or a desktop starts it'
const PROGRAMS = 'shells look up commands there'
const LOGINS = 'it decides who may log in, or what a login runs'

const because = (why: string, ...paths: readonly string[]) => paths.map(path => [path, why] as const)

const START_FILES: ReadonlyMap<string, string> = new Map([
  ...because(
    SHELLS,
    ...['.profile', '.login', '.logout', '.shrc', '.kshrc', '.mkshrc', '.cshrc', '.tcshrc', '.inputrc'],
    ...['.bashrc', '.bash_profile', '.bash_login', '.bash_logout', '.bash_aliases', '.bash_completion'],
    ...[
      '.zshrc',
      '.zshenv',
      '.zprofile',
      '.zlogin',
      '.zlogout',
      '.config/fish',
      '.config/zsh',
      '.config/nushell',
    ],
  ),
  ...because(
    DESKTOP,
    ...['.xinitrc', '.xsession', '.xsessionrc', '.xprofile', '.xserverrc', '.pam_environment'],
    ...['.config/autostart', '.config/systemd', '.config/environment.d', '.config/plasma-workspace'],
    ...['.config/i3', '.config/sway', '.config/hypr', '.local/share/systemd', '.local/share/applications'],
    ...['.local/share/dbus-1', 'library/launchagents', 'library/launchdaemons', '.crontab'],
  ),
  ...because(PROGRAMS, '.local/bin', '.cargo/bin', '.npm-global', '.bun/bin', '.deno/bin', '.nvm', '.pyenv'),
  ...because(LOGINS, '.ssh', '.rhosts', '.shosts', '.forward', '.gnupg'),
  ...because('git runs programs that it names', '.gitconfig', '.config/git'),
])
