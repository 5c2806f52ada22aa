/** Builds a plan from a policy, the host's facts and a backend's capabilities. Pure: the same input gives the same plan. */
import { PenError } from '../base/error.ts'
import type { GuestPath } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import { GIT_CONFIG_PATH } from '../policy/profile.ts'
import { PEN_ITSELF } from '../policy/source.ts'
import { buildEnvironment, unsetVariables } from './environment.ts'
import type { HostFacts } from './facts.ts'
import { type Capabilities, findGaps, findWeaker, type Weaker } from './gaps.ts'
import type { NetworkPlan, Plan } from './plan.ts'
import { buildTree } from './tree.ts'

interface Command {
  /** Empty starts a shell. */
  readonly argv: readonly string[]
  readonly cwd: GuestPath
}

/** The unprivileged user that root becomes inside. */
const USER_FOR_ROOT = { uid: 1000, gid: 1000 }

export function buildPlan(policy: Policy, facts: HostFacts, caps: Capabilities, command: Command): Plan {
  refuseWritablePen(policy, facts, caps)
  const { user, runAs } = chooseUser(policy, facts, caps)
  const tree = buildTree(policy, caps.images ? withoutSystem(facts) : facts, user, caps.images)
  const network = planNetwork(policy, caps)
  return {
    backend: caps.backend,
    isolation: caps.isolation,
    soft: !caps.kernelFiles,
    workspace: policy.workspace,
    steps: tree.steps,
    layer: facts.layer === undefined ? undefined : { dir: facts.layer, kind: 'overlay' },
    argv: command.argv.length === 0 ? [facts.shell] : command.argv,
    cwd: command.cwd,
    env: buildEnvironment(policy, facts, caps.images),
    hostname: 'pen',
    user,
    runAs,
    network,
    limits: policy.limits,
    listedExec: policy.tools.exec === 'listed' && caps.listedExec,
    executable: tree.executable,
    makeDirectories: tree.makeDirectories,
    growing: tree.growing,
    watch: facts.repository.watch.map(({ path }) => path),
    gaps: findGaps(policy, caps, facts),
    weaker: [...findWeaker(caps), ...(caps.kernelFiles ? [] : rootOwnedProject(facts))],
    notes: [...tree.notes, ...unsetVariables(policy, facts)],
    ...(caps.kernelFiles ? {} : withoutMounts(policy, facts)),
  }
}

/** No gap can be accepted for this: a sandbox that can write pen's files can run anything on the host. */
function refuseWritablePen(
  { files }: Policy,
  { foldsNames }: HostFacts,
  { kernelFiles, backend }: Capabilities,
): void {
  const own = files.protect.find(({ source }) => source.layer === PEN_ITSELF)
  if (own === undefined || (kernelFiles && !foldsNames)) return
  const why = kernelFiles
    ? 'its file system ignores case, so by another spelling it stays writable'
    : `the ${backend} backend cannot keep it read-only`
  throw new PenError('PATH_REFUSED', {
    what: `pen itself is installed where the sandbox may write, and ${why}: the sandbox could replace the program that your next command runs`,
    at: own.rule.path,
    hint: 'install pen outside of the project and of what you grant: npm install --global',
  })
}

/** Without id mapping, root's files do not belong to the user that runs the command. */
const rootOwnedProject = ({ unprivilegedUser }: HostFacts): Weaker[] =>
  unprivilegedUser?.owner === false
    ? [
        {
          name: 'project-of-root',
          how: 'root owns the project and the command runs as another user: it reads world-readable files and writes none',
        },
      ]
    : []

/** Set for each run, to directories of that run. */
const RUN_VARIABLES = ['HOME', 'TMPDIR', 'XDG_CACHE_HOME', 'npm_config_cache']

/** The plan of a backend without mounts. The sandbox sees the host's files, with its own home and scratch directories. */
function withoutMounts(policy: Policy, facts: HostFacts): Partial<Plan> {
  // These variables point at files that would be mounted. Without mounts, the host's own file is at that path.
  const files = [...policy.packages.files.map(({ at }) => at), GIT_CONFIG_PATH]
  const env = buildEnvironment(policy, facts).filter(
    ({ name, value }) => !RUN_VARIABLES.includes(name) && !files.includes(value),
  )
  return {
    steps: [],
    executable: [],
    makeDirectories: [],
    growing: policy.files.write.map(({ rule }) => rule.path),
    env: [...env, { name: 'SOFT_SANDBOX', value: 'true', secret: false }],
    ...(facts.gitIdentity !== undefined && { gitIdentity: facts.gitIdentity }),
    notes: [
      'nothing is mounted; HOME and TMPDIR are private directories, removed at the end',
      'without tools.allow only the command of pen run itself may run; a shell runs only if you set tools.shell',
      ...unsetVariables(policy, facts),
    ],
  }
}

/** An image brings its own system in place of the host's. */
const withoutSystem = (facts: HostFacts): HostFacts => ({
  ...facts,
  system: [],
  path: [],
  toolchains: new Map(),
})

function chooseUser(policy: Policy, facts: HostFacts, caps: Capabilities): Pick<Plan, 'user' | 'runAs'> {
  const user = userInside(policy, facts)
  const instead = facts.unprivilegedUser
  if (instead === undefined) return { user, runAs: 'self' }
  // Without id mapping, a configured user has the same ids inside and outside.
  const { uid, gid } = !caps.mapsUser && policy.user !== 'host' ? user : instead
  return { user: caps.mapsUser ? user : { uid, gid }, runAs: { uid, gid } }
}

function userInside(policy: Policy, facts: HostFacts): { uid: number; gid: number } {
  if (policy.user !== 'host') {
    const [uid = 1000, gid = 1000] = policy.user.split(':').map(Number)
    return { uid, gid }
  }
  if (facts.identity.uid !== 0) return facts.identity
  const instead = facts.unprivilegedUser
  return instead?.owner === true ? { uid: instead.uid, gid: instead.gid } : USER_FOR_ROOT
}

function planNetwork(policy: Policy, caps: Capabilities): NetworkPlan {
  const { network } = policy
  if (network.offline) return { kind: 'none', why: 'offline' }
  if (network.mode === 'none') return { kind: 'none', why: 'network.mode is "none"' }
  if (network.mode === 'bridge' && caps.bridge) return { kind: 'bridge' }
  // The gateway runs even without an allow rule: it explains refusals, and rules can be added while the sandbox runs.
  return caps.gateway ? { kind: 'gateway' } : { kind: 'none', why: 'this backend has no gateway' }
}
