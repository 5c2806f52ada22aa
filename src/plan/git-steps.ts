/** The sandbox's own git directory, at the place of the host's one, and what it borrows from the host. */
import { sha256 } from '../base/sha256.ts'
import type { GuestPath, HostPath } from '../policy/files/path.ts'
import type { GitDirectory } from './facts.ts'
import type { Step } from './plan.ts'

type Bind = Extract<Step, { op: 'bind' }>

export function gitSteps(git: GitDirectory, own: HostPath): Bind[] {
  const why = "the sandbox's own git directory"
  return [
    { op: 'bind', from: own, at: git.path as GuestPath, mode: 'rw', why },
    ...[git, ...git.submodules].flatMap(borrowed),
  ]
}

/** The empty directory of an uninitialised submodule, beside the sandbox's own git directory. It may serve several runs. */
export const emptyModule = (own: HostPath, path: string): HostPath =>
  `${own.slice(0, own.lastIndexOf('/'))}/modules/${sha256(path).slice(0, 16)}` as HostPath

/** Each object directory has the path inside that git looks at, also where a link leads to it on the host. */
export function borrowed({ path, lentAt, alternates, hasLfs }: Omit<GitDirectory, 'submodules'>): Bind[] {
  const lend = (from: string, at: string): Bind => ({
    op: 'bind',
    from: from as HostPath,
    at: at as GuestPath,
    mode: 'ro',
    why: 'borrowed by git',
  })
  return [
    lend(`${path}/objects`, `${lentAt}/objects`),
    // git-lfs looks beside the borrowed objects.
    ...(hasLfs ? [lend(`${path}/lfs`, `${lentAt}/lfs`)] : []),
    ...alternates.map(({ from, at }) => lend(from, at)),
  ]
}
