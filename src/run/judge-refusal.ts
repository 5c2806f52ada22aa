/**
 * The kernel refuses hidden files and missing programs without telling pen, so there is no record. A library user sees such an error, and
 * asks here whether the policy is the reason.
 */
import { basename } from '../base/posix-path.ts'
import type { JudgedAccess } from '../control/messages.ts'
import { isShellName } from '../plan/system-view.ts'
import { decideFile } from '../policy/files/decide-file.ts'
import { grantFix } from '../policy/files/decide-grant.ts'
import type { HostPath } from '../policy/files/path.ts'
import type { Policy } from '../policy/policy.ts'
import type { Serving } from './supervision/supervisor.ts'

export interface Judged {
  readonly reason: string
  readonly why: string
  readonly fix: string
}

export interface Question {
  readonly access: JudgedAccess
  /** The path or program as the sandbox wrote it: hostile. It is only compared with rules. */
  readonly path: string
}

/** Null when no rule forbids it: the file does not exist. */
export function judgeRefusal(
  { prepared, refusals }: Pick<Serving, 'prepared' | 'refusals'>,
  { access, path }: Question,
): Judged | null {
  const { policy, project } = prepared.loaded
  if (access === 'exec') {
    const judged = judgeProgram(policy, basename(path))
    if (judged !== null) refusals.record({ kind: 'tool-denied', command: [path], ...judged })
    return judged
  }
  const asked = access === 'write' ? 'write' : 'read'
  const verdict = decideFile(policy, path as HostPath, asked)
  if (verdict.ok) return null
  const { reason, why } = verdict
  // The sandbox runs, so the path can be granted without a restart.
  const grant =
    reason === 'not-granted'
      ? grantFix({ ...policy, sandbox: project.name }, project.world, path, asked)
      : undefined
  const fix = grant ?? verdict.fix
  refusals.record({ kind: 'file-denied', access, path, reason, why, rule: verdict.rule, fix })
  return { reason, why, fix }
}

function judgeProgram({ tools }: Policy, name: string): Judged | null {
  if (!tools.shell && isShellName(name))
    return {
      reason: 'shell-off',
      why: 'it is a shell, and tools.shell is false',
      fix: 'pen config set tools.shell true, then pen restart',
    }
  if (tools.allow === 'shown' || tools.allow.includes(name)) return null
  return {
    reason: 'not-listed',
    why: 'it is not among the tools that the policy lists',
    fix: 'pen config set tools.allow NAME …, with every program that may run, then pen restart',
  }
}
