/**
 * Removes a directory with its contents. Only when the policy lists `rm`, which would do the same. All or nothing as
 * far as pen can know: one name that may not be deleted keeps everything.
 */
import { PenError } from '../../../base/error.ts'
import { basename, dirname } from '../../../base/posix-path.ts'
import { decideTool } from '../../../policy/decide-tool.ts'
import type { HostPath } from '../../../policy/files/path.ts'
import type { Policy } from '../../../policy/policy.ts'
import { Directory } from './directory.ts'
import type { Gate } from './gate.ts'

const MAX_NAMES = 100_000
const RM = { name: 'rm', shell: false }

export function removeTree(gate: Gate, policy: Policy, text: string): void {
  const { judge } = gate
  const path = judge.findName('delete', text)
  const tool = decideTool(policy, RM, 'agent')
  if (!tool.ok)
    throw judge.refuse('delete', path, {
      reason: 'not-granted',
      why: 'deleting a directory with its contents is off unless tools.allow lists rm',
      fix: tool.fix,
    })
  const parent = Directory.open(dirname(path) as HostPath)
  try {
    const names = survey(gate, parent, basename(path), { left: MAX_NAMES })
    judge.allow('delete', path, names)
    take(gate, parent, basename(path))
  } finally {
    parent.close()
  }
}

/** Counts the names. Throws at the first that may not be deleted. */
function survey(gate: Gate, parent: Directory, name: string, budget: { left: number }): number {
  const path = `${parent.path}/${name}` as HostPath
  mustGo(gate, parent, path)
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

/**
 * Judges each name again, because it may be new, and follows no link. A refusal leaves the rest in place. `removeTree`
 * of base/ cannot do that, because it moves directories before it empties them.
 */
function take(gate: Gate, parent: Directory, name: string): void {
  mustGo(gate, parent, `${parent.path}/${name}` as HostPath)
  if (parent.look(name)?.isDirectory() !== true) {
    parent.unlink(name)
    return
  }
  const directory = parent.enter(name)
  try {
    for (const inner of directory.names()) take(gate, directory, inner)
  } finally {
    directory.close()
  }
  parent.removeEmpty(name)
}

function mustGo(gate: Gate, parent: Directory, path: HostPath): void {
  const verdict = gate.judge.verdict('delete', path)
  if (!verdict.ok) throw gate.judge.refuse('delete', path, verdict)
  gate.requireOwn('write', path, parent.stats())
}
