/**
 * What a plan needs to know about the host, found with a bounded number of look-ups. Only a `**` + `/` glob makes pen walk
 * the project. Without one, a project of 200,000 files starts as fast as an empty one.
 */
import { existsSync, lstatSync, mkdirSync, readFileSync, readlinkSync, statSync } from 'node:fs'
import { surveyHostTools } from '../backend/programs/survey-host.ts'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { lookAt } from '../base/beneath/look-at.ts'
import { errnoOf, PenError } from '../base/error.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { dirname } from '../base/posix-path.ts'
import { printable } from '../base/printable.ts'
import { sha256 } from '../base/sha256.ts'
import type { Project } from '../config/project.ts'
import { agentNote } from '../plan/agent-note.ts'
import { PASSED_VARIABLES } from '../plan/environment.ts'
import type { HostFacts, SystemEntry } from '../plan/facts.ts'
import { searchPath, toolchainVariables } from '../plan/search-path.ts'
import { HOME_TOOLCHAINS, SYSTEM_ROOTS, TOOLCHAIN_ROOTS } from '../plan/system-view.ts'
import { showDeny } from '../policy/files/decide-file.ts'
import type { Glob } from '../policy/files/glob.ts'
import { type GuestPath, type HostPath, isWithin, type Located } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { showSource } from '../policy/source.ts'
import { AnyDepth } from './any-depth.ts'
import { foldsNames } from './case-folding.ts'
import { type DeniedWays, deniedWays } from './denied-ways.ts'
import { type Covered, coveredAt, expandGlob } from './expand.ts'
import { realPath, userConfigFiles } from './git/directory.ts'
import { gitIdentity } from './git/identity.ts'
import { type RepositoryFacts, surveyRepository } from './git/repository.ts'
import { homeLinkNote } from './home-link-note.ts'
import { hostAuthorities } from './host-authorities.ts'
import { hostServices } from './host-services.ts'
import { ListingCache } from './listing-cache.ts'
import { refuseHardLink } from './places.ts'
import { searchTree } from './search-tree.ts'
import { systemConfig } from './system-config.ts'

export interface Surveyed extends HostFacts {
  readonly repository: RepositoryFacts & HostFacts['repository']
}

export function surveyHost(
  policy: Policy,
  project: Project,
  env: Readonly<Record<string, string | undefined>>,
  /** `name` is that of the sandbox's own git directory; undefined for a sandbox without mounts, which has none. */
  {
    homeWarnings,
    ownRepository,
    review,
  }: {
    readonly homeWarnings: readonly string[]
    readonly ownRepository: string | undefined
    /** What the sandbox writes in the project goes to a layer over it. */
    readonly review: boolean
  },
): Surveyed {
  const { world } = project
  const system = systemEntries(policy, world.home)
  const path = searchPath(env['PATH'] ?? '', policy, system, entry => realPath(entry) ?? entry)
  const repository = surveyRepository(policy.workspace, {
    home: world.home,
    stateDir: project.shared.stateDir,
    ownRepository: ownRepository !== undefined,
    userConfigs: userConfigFiles(world.home, env),
    protect: policy.files.protect.map(({ rule }) => rule.path),
    roots: [
      ...policy.files.write.map(({ rule }) => rule.path),
      ...policy.mounts.flatMap(({ rule }) => (rule.kind === 'host' && rule.mode === 'rw' ? [rule.host] : [])),
    ],
  })
  const { denied, ways, unlocated } = deniedNow(policy, project, repository.git?.path)
  return {
    system,
    located: locateGrants(policy, project),
    denied,
    repository: {
      ...repository,
      own: `${project.stateDir}/git/${ownRepository}/dir` as HostPath,
      pins: [...repository.pins, ...ways.pins],
      // Nothing that is made in a layer appears on the host.
      watch: [...repository.watch, ...ways.watch].filter(
        place => !review || !isWithin(place.path, policy.workspace),
      ),
      warnings: [
        ...repository.warnings,
        ...homeLinkNote(policy),
        ...tellUnlocated(unlocated),
        ...homeWarnings.map(warning => printable(warning, 1024)),
      ],
    },
    foldsNames: foldsNames(policy.workspace),
    env: passedOn(policy, env),
    identity: { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 },
    unprivilegedUser: isHostRoot() ? unprivilegedUser(policy.workspace, project.id) : undefined,
    shell: chooseShell(policy),
    path: path.all,
    toolchains: toolchainVariables(env, world.home, system),
    authorities: hostAuthorities(),
    volumes: `${project.stateDir}/volumes` as HostPath,
    layer: review ? (`${project.stateDir}/review` as HostPath) : undefined,
    note: noteFor(policy, project.stateDir),
    gitIdentity: policy.git.identity ? gitIdentity(policy.workspace, world.home, env) : undefined,
    tools: surveyHostTools(policy, system, path.readOnly),
  }
}

/** The first shell that the policy allows, or else the first that exists, for the error. */
function chooseShell({ tools }: Policy): GuestPath {
  let first: string | undefined
  for (const shell of ['/bin/bash', '/usr/bin/bash', '/bin/sh']) {
    if (!existsSync(shell)) continue
    const name = shell.slice(shell.lastIndexOf('/') + 1)
    if (tools.allow === 'shown' || tools.allow.includes(name)) return shell as GuestPath
    first ??= shell
  }
  return (first ?? '/bin/sh') as GuestPath
}

function noteFor(policy: Policy, stateDir: string): NonNullable<HostFacts['note']> {
  const text = agentNote(policy)
  return { text, file: `${stateDir}/notes/${sha256(text).slice(0, 16)}.md` as HostPath }
}

/** The host's system directories that every sandbox of this policy sees, read-only. */
export function systemEntries(policy: Pick<Policy, 'profile'>, home: string): SystemEntry[] {
  const wanted = [
    ...SYSTEM_ROOTS,
    ...systemConfig(),
    ...(policy.profile === 'strict' ? [] : TOOLCHAIN_ROOTS),
    ...(policy.profile === 'dev' ? HOME_TOOLCHAINS.map(part => `${home}/${part}`) : []),
  ]
  const out: SystemEntry[] = []
  for (const path of wanted) {
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (stat === undefined) continue
    if (stat.isSymbolicLink()) {
      // The link keeps its target: inside, it leads to what the sandbox sees there, or nowhere.
      out.push({ kind: 'link', path: path as HostPath, to: readlinkSync(path) })
    } else if (stat.isDirectory() || stat.isFile()) {
      out.push({ kind: 'tree', path: path as HostPath })
    }
  }
  return out
}

function locateGrants(policy: Policy, project: Project): ReadonlyMap<string, Located> {
  const paths = [
    ...policy.files.read.map(({ rule }) => rule.path as string),
    ...policy.mounts.flatMap(({ rule }) => (rule.kind === 'host' ? [rule.host as string] : [])),
  ]
  return new Map([...new Set(paths)].map(path => [path, project.world.locate(path)]))
}

/** Denied places that exist. For a link, its target is covered, because that is what a program would read. */
function deniedNow(
  policy: Policy,
  project: Project,
  git: string | undefined,
): {
  readonly denied: HostFacts['denied']
  readonly ways: DeniedWays
  readonly unlocated: readonly string[]
} {
  const named: string[] = []
  const roots = policy.files.read.map(({ rule }) => rule.path)
  const cache = new ListingCache({ file: `${project.stateDir}/listings.json`, save: saveListing })
  const anyDepth = AnyDepth.of(policy, git)
  const searched = anyDepth === undefined ? undefined : searchTree(anyDepth)
  const coveredBy = (glob: Glob): readonly Covered[] => {
    const paths = searched?.get(glob)
    return paths === undefined
      ? expandGlob(glob, policy.workspace, cache)
      : coveredAt(paths, glob, policy.workspace)
  }
  const out = new Map<string, HostFacts['denied'][number]>()
  for (const { rule, source } of policy.files.deny) {
    const matches = rule.kind === 'path' ? [rule.path] : coveredBy(rule.glob).map(({ path }) => path)
    for (const path of matches) {
      named.push(path)
      // A loop of links shows nothing, and must not prevent the next run.
      if (leadsInACircle(path)) continue
      const { real, kind } = project.world.locate(path)
      const isMissing = kind === 'absent' || kind === 'unreachable'
      // A path in a locked directory does not resolve either: the second look distinguishes the two.
      if (isMissing && roots.some(root => isWithin(path, root))) lookAt(path)
      if (isMissing || real === policy.workspace || isWithin(policy.workspace, real)) continue
      const stats = lookAt(real)
      if (stats === undefined) continue
      refuseHardLink(real, stats, 'denied')
      out.set(real, {
        path: real,
        kind: kind === 'directory' ? 'directory' : 'file',
        why: `${showDeny(rule)}, ${showSource(source)}`,
      })
    }
  }
  const services = hostServices(roots, roots)
  for (const path of services.paths)
    if (!out.has(path)) out.set(path, { path, kind: 'file', why: 'a service of the host listens there' })
  if (out.size > MOST_COVERED) throw tooMany([...out.values()])
  return {
    denied: [...out.values()],
    ways: deniedWays(policy, named),
    unlocated: services.unlocated,
  }
}

function tellUnlocated(names: readonly string[]): readonly string[] {
  if (names.length === 0) return []
  const shown = names.slice(0, MOST_NAMED).map(name => printable(name, 100))
  const more = names.length > MOST_NAMED ? ` and ${names.length - MOST_NAMED} more` : ''
  return [
    `services of yours listen on sockets with a relative name, and pen cannot tell where they are: ${shown.join(', ')}${more}; if one is in the project the sandbox can reach it; fix: start it with an absolute path`,
  ]
}

const MOST_NAMED = 3

/** Each is a mount. A mount costs 0.2 ms, and more as they add up. */
const MOST_COVERED = 2000

function tooMany(denied: HostFacts['denied']): PenError {
  const [first] = denied
  return new PenError('PATH_REFUSED', {
    what: `${denied.length} denied paths exist, such as ${printable(String(first?.path), 200)} (${first?.why}), and pen can hide ${MOST_COVERED}`,
    hint: 'remove those that are not needed, or move them into one directory and deny that: --deny secrets/',
  })
}

function leadsInACircle(path: string): boolean {
  try {
    statSync(path, { throwIfNoEntry: false })
    return false
  } catch (error) {
    return errnoOf(error) === 'ELOOP'
  }
}

/** Only a speed-up: when it cannot be written, the next run lists the directory again. */
function saveListing(file: string, text: string): void {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
    writeFileAtomically(file, text)
  } catch {
    // A full disk or a read-only home: the run reports that where it matters.
  }
}

function passedOn(
  policy: Policy,
  env: Readonly<Record<string, string | undefined>>,
): ReadonlyMap<string, string> {
  const names = [
    ...PASSED_VARIABLES,
    ...[...policy.env].filter(([, setting]) => setting.value.kind === 'host').map(([name]) => name),
  ]
  return new Map(names.flatMap(name => (env[name] === undefined ? [] : [[name, env[name]] as const])))
}

/** Far above the ids that systems assign, and different for each project, so that two sandboxes are two users. */
const UNUSED_UIDS = 0x70000000

/** The user that root's sandbox processes run as on the host. */
function unprivilegedUser(workspace: string, id: string): NonNullable<HostFacts['unprivilegedUser']> {
  const owner = lstatSync(workspace)
  if (owner.uid !== 0) return { uid: owner.uid, gid: groupOf(owner), owner: true }
  const uid = UNUSED_UIDS + Number.parseInt(id.slice(-6), 16)
  return { uid, gid: uid, owner: false }
}

/** A sandbox is never in root's group. If the project is, the owner's group from /etc/passwd is used, or one equal to the uid. */
function groupOf({ uid, gid }: { readonly uid: number; readonly gid: number }): number {
  if (gid !== 0) return gid
  const users = readFileSync('/etc/passwd', 'utf8')
    .split('\n')
    .map(line => line.split(':'))
  return Number(users.find(fields => fields[2] === String(uid))?.[3]) || uid
}
