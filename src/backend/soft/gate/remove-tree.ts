/**
 * Removes a directory with its contents. Only when the policy lists `rm`, which would do the same. All or nothing as
 * far as pen can know: one name that may not be deleted keeps everything.
 */
import type { BigIntStats } from 'node:fs'
import { PenError } from '../../../base/error.ts'
import { decideTool } from '../../../policy/decide-tool.ts'
import type { HostPath } from '../../../policy/files/path.ts'
import type { Policy } from '../../../policy/policy.ts'
import type { Directory } from './directory.ts'
import type { Gate } from './gate.ts'
import type { FileJudge } from './judge-file.ts'

const MAX_NAMES = 100_000
const RM = { name: 'rm', shell: false }

/** Throws when the policy refuses, before any file is looked at. */
export function requireRm(judge: FileJudge, policy: Policy, path: HostPath): void {
  const tool = decideTool(policy, RM, 'agent')
  if (!tool.ok)
    throw judge.refuse('delete', path, {
      reason: 'not-granted',
      why: 'deleting a directory with its contents is off unless tools.allow lists rm',
      fix: tool.fix,
    })
  requireVerdict(judge, path)
}

export function removeTree(gate: Gate, parent: Directory, name: string): void {
  const names = survey(gate, parent, name, { left: MAX_NAMES })
  gate.judge.allow('delete', `${parent.path}/${name}` as HostPath, names)
  // Judged again: a name may be new.
  parent.removeTree(name, (path, stats) => mustGo(gate, path, stats))
}

/** Counts the names. Throws at the first that may not be deleted. */
function survey(gate: Gate, parent: Directory, name: string, budget: { left: number }): number {
  const path = `${parent.path}/${name}` as HostPath
  mustGo(gate, path, parent.stats())
  if (budget.left-- <= 0)
    throw new PenError('LIMIT', {
      what: `more than ${MAX_NAMES} names are in it`,
      at: path,
      hint: 'delete its parts one by one',
    })
  if (parent.look(name)?.isDirectory() !== true) return 1
  const directory = parent.enter(name)
  try {
    return directory.names().reduce((sum, inner) => sum + survey(gate, directory, inner, budget), 1)
  } finally {
    directory.close()
  }
}

function mustGo(gate: Gate, path: HostPath, parent: BigIntStats): void {
  requireVerdict(gate.judge, path)
  gate.requireOwn('write', path, parent)
}

function requireVerdict(judge: FileJudge, path: HostPath): void {
  const verdict = judge.verdict('delete', path)
  if (!verdict.ok) throw judge.refuse('delete', path, verdict)
}
