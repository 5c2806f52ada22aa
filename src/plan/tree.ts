/**
 * The sandbox's file tree, as steps. It starts empty. Grants are added with the most specific path last, so that it wins.
 * `decideFile` decides every grant, pin and cover, so mounts and explanations always agree.
 */
import { PenError } from '../base/error.ts'
import { dirname } from '../base/posix-path.ts'
import type { Bytes } from '../base/quantity.ts'
import { decideFile } from '../policy/files/decide-file.ts'
import { depth, type GuestPath, type HostPath, isWithin } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { GIT_CONFIG_PATH, SANDBOX_HOME } from '../policy/profile.ts'
import { showSource } from '../policy/source.ts'
import { noteSteps } from './agent-note.ts'
import { checkMountAlias, isAtItsOwnPath, refusedGrant } from './check-grants.ts'
import { AUTHORITIES_PATH, USER_NAME } from './environment.ts'
import type { HostFacts } from './facts.ts'
import { emptyModule, gitSteps } from './git-steps.ts'
import { deniedAbove, openCovers } from './open-covers.ts'
import type { Step } from './plan.ts'
import { growsInLayer, isPinned, throughLayer } from './review-layer.ts'
import { type ToolView, viewTools } from './tools.ts'

const file = (at: string, text: string): Step => ({ op: 'file', at: at as GuestPath, text })

/**
 * Includes the system's git config, so that a file in an image still applies. The project may belong to another user, and git
 * would refuse it: no setting of the user's crosses that allows it.
 */
const identitySteps = ({ gitIdentity }: HostFacts): Step[] =>
  gitIdentity === undefined
    ? []
    : [file(GIT_CONFIG_PATH, `[include]\n\tpath = /etc/gitconfig\n[safe]\n\tdirectory = *\n${gitIdentity}`)]

/** At one path the later kind covers the earlier: a grant never covers a denial. */
const ORDER = { scratch: 0, grant: 1, pin: 2, protect: 3, deny: 4 } as const

interface Placed {
  readonly order: number
  readonly step: Step & { readonly at: GuestPath }
}

interface Tree {
  readonly steps: readonly Step[]
  readonly makeDirectories: readonly HostPath[]
  readonly growing: readonly HostPath[]
  readonly notes: readonly string[]
  /** Where listed programs may execute from. */
  readonly executable: ToolView['executable']
}

const MISSING = {
  absent: { what: 'does not exist', fix: 'check the spelling, create it' },
  unreachable: {
    what: 'is in a directory that you may not enter',
    fix: 'make its directories enterable for you: chmod u+x DIRECTORY',
  },
} as const

export function buildTree(
  policy: Policy,
  facts: HostFacts,
  identity: { uid: number; gid: number },
  /** With an image, the engine provides programs, `/dev` and `/proc`. */
  image: boolean,
): Tree {
  const placed: Placed[] = []
  const make: HostPath[] = []
  const notes: string[] = [...facts.repository.warnings]
  const place = (order: keyof typeof ORDER, step: Placed['step']) =>
    placed.push({ order: ORDER[order], step })
  const bind = (order: keyof typeof ORDER, path: string, mode: 'ro' | 'rw', why: string, at = path) =>
    place(order, {
      op: 'bind',
      from: throughLayer(path, mode, policy, facts),
      at: at as GuestPath,
      mode,
      why,
    })

  const tools = image ? NO_TOOLS : viewTools(policy, facts)
  notes.push(...tools.notes)
  for (const step of tools.late) place('grant', step)

  const scratch = SCRATCH.map(([at, share, mode]) => ({
    op: 'tmpfs' as const,
    at: at as GuestPath,
    size: scratchSize(policy, share),
    mode,
  }))
  // A scratch directory that contains the user's home also contains its toolchains, so it is mounted before them.
  const below = image ? [] : scratch.filter(({ at }) => facts.system.some(({ path }) => isWithin(path, at)))
  for (const step of scratch) if (!below.includes(step)) place('scratch', step)

  for (const path of new Set(policy.files.read.map(({ rule }) => rule.path))) {
    const write = decideFile(policy, path, 'write')
    const read = decideFile(policy, path, 'read')
    // A grant of a protected path loses write access. A grant of a denied path is dropped.
    notes.push(...refusedGrant(policy, path, read, write))
    if (!read.ok) continue
    const { kind, real } = facts.located.get(path) ?? { kind: 'absent', real: path }
    // The user's grants were resolved when the config was read. A link at a path that a profile names is newer: an agent may have
    // made it, and following it would grant its target.
    if (real !== path)
      throw new PenError('PATH_REFUSED', {
        what: `${path} is granted by ${showSource(read.source)}, but a link leads from it to ${real}`,
        hint: 'replace the link with a directory, or grant its target by its own path',
      })
    if (kind === 'absent' || kind === 'unreachable') {
      if (kind === 'absent' && write.ok && isWithin(path, policy.workspace)) make.push(path)
      else if (read.source.layer === 'command line')
        // In a document the path may be for another machine, or for later. On the command line it is a mistake.
        throw new PenError('MOUNT_SOURCE', {
          what: `${path} ${MISSING[kind].what}`,
          at: `--read or --write`,
          hint: `${MISSING[kind].fix}, or leave the flag out`,
        })
      else {
        notes.push(`${path} is granted by ${showSource(read.source)} but ${MISSING[kind].what}`)
        continue
      }
    }
    bind(
      'grant',
      path,
      write.ok ? 'rw' : 'ro',
      `granted by ${showSource(write.ok ? write.source : read.source)}`,
    )
  }
  const { git, own, emptyModules } = facts.repository
  if (git !== undefined) for (const step of gitSteps(git, own)) place('grant', step)
  for (const path of emptyModules)
    bind('protect', emptyModule(own, path), 'rw', 'a submodule without a checkout', path)
  for (const { rule, source } of policy.mounts) {
    if (rule.kind === 'volume') {
      const from = `${facts.volumes}/${rule.volume}` as HostPath
      make.push(from)
      bind('grant', from, 'rw', `volume ${rule.volume}`, rule.at)
    } else {
      const { kind } = facts.located.get(rule.host) ?? { kind: 'absent' }
      if (kind === 'absent' || kind === 'unreachable')
        throw new PenError('MOUNT_SOURCE', {
          what: `the mount source ${rule.host} ${MISSING[kind].what}`,
          at: source.place ?? source.layer,
          hint: `${MISSING[kind].fix}, or drop the mount`,
        })
      checkMountAlias(policy, facts, { rule, source })
      bind('grant', rule.host, rule.mode, `mounted by ${showSource(source)}`, rule.at)
    }
  }

  if (image && facts.authorities !== undefined)
    bind('grant', facts.authorities, 'ro', 'certificate authorities of the host', AUTHORITIES_PATH)

  const held = facts.repository.protect
  for (const { path } of held) if (readable(policy, path)) bind('protect', path, 'ro', 'protected')
  for (const { path, kind, why } of [...facts.denied, ...deniedAbove(policy, make)])
    if (reachable(policy, path)) place('deny', { op: 'cover', at: path as GuestPath, kind, why })

  // The policy does not know what is held for the settings of the repository.
  const heldBeyond = held.filter(({ path }) => writable(policy, path))
  const isWritable = (path: string): boolean =>
    writable(policy, path) && !heldBeyond.some(place => isWithin(path, place.path))
  // A pin here would show the host's directory in place of the sandbox's own.
  const replaced = [
    ...(git === undefined ? [] : [git.path]),
    ...policy.mounts.flatMap(({ rule }) =>
      rule.kind === 'host' && isAtItsOwnPath(rule) ? [] : [rule.at as string],
    ),
  ]
  // A directory above a protected path could be renamed and replaced. A mount point cannot, so it is pinned.
  for (const path of pinsOf(
    [...held, ...facts.denied].map(({ path }) => path),
    facts.repository.pins,
    policy,
  ))
    if (isPinned(path, policy, facts) && readable(policy, path) && !replaced.some(at => isWithin(path, at)))
      bind('pin', path, isWritable(path) ? 'rw' : 'ro', 'holds a protected or denied place')

  const system = image ? [] : systemSteps(facts)
  const others = [...system, ...placed.map(({ step }) => step)]
  for (const step of noteSteps(facts, policy.workspace, others, image)) place('scratch', step)

  return {
    steps: [
      ...below,
      ...system,
      ...accountSteps(facts, identity),
      ...policy.packages.files.map(({ at, text }) => file(at, text)),
      ...identitySteps(facts),
      ...tools.steps,
      ...openCovers(inOrder(placed)),
      // Private parts of /dev have their own mounts. The rest would be one more writable, executable place.
      ...(image ? [] : [{ op: 'seal', at: '/dev' as GuestPath } as const]),
      { op: 'seal', at: '/' as GuestPath },
    ],
    makeDirectories: make,
    growing: growingTrees(policy, facts),
    notes,
    executable: tools.executable,
  }
}

const NO_TOOLS: ToolView = { steps: [], late: [], executable: [], notes: [] }

/** Private, empty, bounded directories: path, share of the scratch limit, mode. */
const SCRATCH: readonly (readonly [string, number, number])[] = [
  ['/tmp', 1, 0o1777],
  ['/var/tmp', 0.25, 0o1777],
  ['/dev/shm', 0.5, 0o1777],
  ['/run', 0.01, 0o755],
  [SANDBOX_HOME, 0.5, 0o700],
]

/** Scratch is in memory. It may take half of the memory limit, and at most the disk limit. */
function scratchSize(policy: Policy, share: number): Bytes {
  const size = Math.min(policy.limits.disk, policy.limits.memory / 2) * share
  const unit = size < 1024 ** 2 ? 1024 : 1024 ** 2
  return Math.max(65_536, Math.floor(size / unit) * unit) as Bytes
}

/** The host's system directories, and `/dev` and `/proc`. */
export function systemSteps(facts: Pick<HostFacts, 'system'>): Step[] {
  return [
    ...facts.system.map((entry): Step => {
      const at = entry.path as string as GuestPath
      return entry.kind === 'link'
        ? { op: 'link', at, to: entry.to }
        : { op: 'bind', from: entry.path, at, mode: 'ro', why: 'system' }
    }),
    { op: 'devices', at: '/dev' as GuestPath },
    { op: 'processes', at: '/proc' as GuestPath },
  ]
}

/** The user database, and the resolver configuration. */
function accountSteps(facts: HostFacts, { uid, gid }: { uid: number; gid: number }): Step[] {
  return [
    file(
      '/etc/passwd',
      `root:x:0:0:root:/root:/usr/sbin/nologin\n${USER_NAME}:x:${uid}:${gid}::${SANDBOX_HOME}:${facts.shell}\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`,
    ),
    file('/etc/group', `root:x:0:\n${USER_NAME}:x:${gid}:\nnogroup:x:65534:\n`),
    file('/etc/hosts', '127.0.0.1 localhost\n::1 localhost ip6-localhost\n'),
    file(
      '/etc/nsswitch.conf',
      'passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n',
    ),
    file('/etc/resolv.conf', 'nameserver 127.0.0.1\noptions timeout:2 attempts:2\n'),
  ]
}

/** Parents before children. At one path, only the last kind remains. */
function inOrder(placed: readonly Placed[]): Step[] {
  const byPath = new Map<string, Placed>()
  for (const item of placed) {
    const there = byPath.get(item.step.at)
    if (there === undefined || item.order >= there.order) byPath.set(item.step.at, item)
  }
  return [...byPath.values()]
    .sort((a, b) => depth(a.step.at) - depth(b.step.at) || (a.step.at < b.step.at ? -1 : 1))
    .map(item => item.step)
}

const roots = (policy: Policy): string[] => [
  ...policy.files.read.map(({ rule }) => rule.path),
  ...policy.mounts.flatMap(({ rule }) => (rule.kind === 'host' && isAtItsOwnPath(rule) ? [rule.host] : [])),
]

const reachable = (policy: Policy, path: string): boolean => roots(policy).some(root => isWithin(path, root))

/** A mount would reveal the path, so a protected place inside a denied one stays covered. */
const readable = (policy: Policy, path: string): boolean => decideFile(policy, path as HostPath, 'read').ok

const writable = (policy: Policy, path: string): boolean => decideFile(policy, path as HostPath, 'write').ok

function pinsOf(held: readonly string[], pins: readonly string[], policy: Policy): Set<string> {
  const out = new Set<string>(pins.filter(pin => reachable(policy, pin)))
  const tops = roots(policy)
  for (const path of held) {
    for (let at = dirname(path); at !== '/'; at = dirname(at)) {
      if (!tops.some(top => isWithin(at, top) && at !== top)) break
      out.add(at)
    }
  }
  return out
}

function growingTrees(policy: Policy, facts: HostFacts): HostPath[] {
  const trees = [
    ...policy.files.write.flatMap(({ rule }) => growsInLayer(rule.path, policy, facts)),
    ...(facts.repository.git === undefined ? [] : [facts.repository.own]),
    ...policy.mounts.flatMap(({ rule }) =>
      rule.kind === 'volume'
        ? [`${facts.volumes}/${rule.volume}` as HostPath]
        : rule.mode === 'rw'
          ? growsInLayer(rule.host, policy, facts)
          : [],
    ),
  ]
  return [...new Set(trees)].filter(tree => !trees.some(other => other !== tree && isWithin(tree, other)))
}
