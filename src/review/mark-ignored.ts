/**
 * Which changes git ignores, by the ignore files that the project has now. Those that the sandbox wrote into its layer do not
 * count: it could hide its changes by them. A tracked file is never ignored.
 */
import { type BoxWorld, runInBox } from '../backend/box.ts'
import { lookOrUnseen } from '../base/beneath/look-at.ts'
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { readRegularFile } from '../base/regular-file.ts'
import type { GuestPath, HostPath } from '../policy/files/path.ts'
import { BOX_PATH } from '../repository/git/git-box.ts'
import { GIT_ENVIRONMENT } from '../repository/git/git-environment.ts'
import { fields } from '../repository/git/git-runner.ts'
import { HostGit } from '../repository/git/host-git.ts'
import { parentsOf } from '../repository/sync/changed-paths.ts'
import type { Change } from './change.ts'
import { pathBelow } from './entry.ts'
import { type HostRepository, isTracked, trackedIn } from './host-repository.ts'

export interface IgnoreOptions {
  readonly world: BoxWorld
  readonly workspace: string
  readonly repository: HostRepository
  /** A directory for the host's git, which is made here. */
  readonly empty: string
}

/** The ignore files are hostile: a sandbox without review may have written them. git reads them in a box. */
const TIMEOUT_MS = 10_000
const CHECK = `git init -q --bare --template= /tmp/git && mkdir -p /tmp/git/info && printf %s "$1" >/tmp/git/info/exclude &&
  GIT_DIR=/tmp/git GIT_WORK_TREE=/project exec git check-ignore -z --no-index --stdin`

export async function markIgnored(
  changes: readonly Change[],
  options: IgnoreOptions,
): Promise<readonly Change[]> {
  using host = new HostGit(options.repository.dir, options.empty)
  const tracked = await trackedIn(host.run, options.repository)
  const links = new Set(changes.flatMap(({ path, before }) => (before?.type === 'link' ? [path] : [])))
  // git takes no path behind a link of the project's.
  const isBehindLink = ({ path }: Change): boolean => parentsOf(path).some(parent => links.has(parent))
  const candidates = new Set(
    changes.filter(
      change => change.path !== '.' && !isTracked(change.path, tracked) && !isBehindLink(change),
    ),
  )
  const ignored = await ignoredBy([...candidates], options)
  if (ignored.size === 0) return changes
  return changes.map(change => {
    const top = candidates.has(change) ? namesOf(change).find(name => ignored.has(name)) : undefined
    return top === undefined ? change : { ...change, ignored: top.replace(/\/$/, '') }
  })
}

async function ignoredBy(
  changes: readonly Change[],
  { world, workspace, repository }: IgnoreOptions,
): Promise<ReadonlySet<string>> {
  if (changes.length === 0) return new Set()
  const asked = new Set(changes.flatMap(namesOf))
  for (const name of ['', ...asked]) if (name === '' || name.endsWith('/')) refusePipe(workspace, name)
  const { code, stdout, stderr } = await runInBox(world, {
    argv: ['/bin/sh', '-c', CHECK, 'pen', excludesOf(repository)],
    env: { ...GIT_ENVIRONMENT, PATH: BOX_PATH, HOME: '/tmp' },
    steps: [
      {
        op: 'bind',
        from: workspace as HostPath,
        at: '/project' as GuestPath,
        mode: 'ro',
        why: 'ignore files',
      },
    ],
    // Without the dot, git takes a colon for its own syntax.
    input: Buffer.from([...asked].map(name => `${HERE}${name}\0`).join(''), 'latin1'),
    timeoutMs: TIMEOUT_MS,
  })
  if (code > 1) throw unknown(workspace, stderr.trim())
  return new Set(fields(stdout).map(name => name.slice(HERE.length)))
}

/** git would wait for it. */
function refusePipe(workspace: string, directory: string): void {
  const stats = lookOrUnseen(pathBelow(workspace, `${directory}.gitignore`))
  if (typeof stats === 'object' && stats.isFIFO())
    throw unknown(workspace, `${directory}.gitignore is a pipe`)
}

const unknown = (workspace: string, why: string): PenError =>
  new PenError('STATE', {
    what: `git could not say which files it ignores: ${printable(why, 400)}`,
    at: workspace,
    hint: 'look at the .gitignore files of the project, then try again',
  })

const HERE = './'

const excludesOf = ({ dir }: HostRepository): string =>
  readRegularFile(`${dir}/info/exclude`, { maxBytes: 65_536 })?.toString('utf8') ?? ''

/** Each directory above, the highest first, and itself. To git, a directory ends with a slash. */
function namesOf({ path, before, after }: Change): readonly string[] {
  const own = (after ?? before)?.type === 'directory' ? `${path}/` : path
  return [
    ...parentsOf(path)
      .reverse()
      .map(parent => `${parent}/`),
    own,
  ]
}
