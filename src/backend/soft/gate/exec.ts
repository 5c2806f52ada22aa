/**
 * Programs of a soft sandbox, for tools. Each is judged by the policy and recorded, and gets the sandbox's few
 * variables and its limits. Arguments and variables come from an agent and are hostile.
 */
import { lstatSync } from 'node:fs'
import type { AuditSink } from '../../../audit/event.ts'
import { shortCommand } from '../../../audit/line.ts'
import { EXIT, PenError } from '../../../base/error.ts'
import { type ChosenBy, decideTool } from '../../../policy/decide-tool.ts'
import type { HostPath } from '../../../policy/files/path.ts'
import type { Policy } from '../../../policy/policy.ts'
import { findProgram, type Program } from './find-program.ts'
import type { FileJudge } from './judge-file.ts'
import type { ProcessLimits } from './order.ts'
import { countProcesses } from './own-process.ts'
import { ActionFailed, Refused } from './refused.ts'
import type { SupervisedEnding } from './supervised.ts'

export interface ExecWorld {
  readonly policy: () => Policy
  readonly audit: AuditSink
  readonly judge: FileJudge
  /** The whole environment of a program. It has none of pen's variables. */
  readonly env: Readonly<Record<string, string>>
}

export interface ExecOptions {
  /** Added to the sandbox's own variables. */
  readonly env?: Readonly<Record<string, string>>
  /** A directory in the workspace. By default the workspace itself. */
  readonly cwd?: string
}

/** A command that may run, and is in the audit. */
export interface Admitted {
  /** The file that was judged, by its absolute path, and then the other words. */
  readonly argv: readonly string[]
  readonly cwd: HostPath
  readonly env: Readonly<Record<string, string>>
}

/** Markers that a program cannot override. */
const MARKS = { AGENT_IN_SANDBOX: '1', SOFT_SANDBOX: 'true' }

export function admit(world: ExecWorld, argv: readonly string[], options: ExecOptions = {}): Admitted {
  const cwd = directoryOf(world, options.cwd ?? world.policy().workspace)
  const env = { ...checkedVariables(options.env ?? {}), ...MARKS }
  const { file } = allowProgram(world, argv, cwd, 'agent')
  return { argv: [file, ...argv.slice(1)], cwd, env }
}

/** Finds the program of a command, when the policy allows it. The audit has the record when this returns. */
export function allowProgram(
  { policy, audit, env }: Pick<ExecWorld, 'policy' | 'audit' | 'env'>,
  argv: readonly string[],
  cwd: string,
  chosenBy: ChosenBy,
): Program {
  const [word = ''] = argv
  const { PATH = '' } = env
  const command = shortCommand(argv)
  const program = argv.some(other => other.includes('\0'))
    ? undefined
    : findProgram(word, PATH.split(':').filter(Boolean), cwd)
  if (program === undefined) {
    const said = { reason: 'not-found', why: 'there is no such program', fix: 'check the spelling' }
    audit.record({ kind: 'tool-denied', command, ...said })
    throw new Refused({
      what: 'it cannot be run',
      at: word,
      ...said,
    })
  }
  const said = decideTool(policy(), program.tool, chosenBy)
  if (!said.ok) {
    const { reason, why, fix } = said
    audit.record({ kind: 'tool-denied', command, reason, why, fix })
    throw new Refused({ what: 'it may not be run', why, at: word, reason, fix })
  }
  audit.record({ kind: 'tool-allowed', command, program: program.file, rule: said.rule, from: said.from })
  return program
}

function directoryOf({ judge }: ExecWorld, text: string): HostPath {
  const path = judge.find('list', text)
  const said = judge.verdict('list', path)
  if (!said.ok) throw judge.refuse('list', path, said)
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (stats?.isDirectory() === true) return path
  throw stats === undefined
    ? new ActionFailed('ENOENT', { what: 'it is not there', at: path, hint: 'check the spelling' })
    : new ActionFailed('ENOTDIR', { what: 'it is not a directory', at: path, hint: 'name a directory' })
}

function checkedVariables(env: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  for (const [name, value] of Object.entries(env))
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name) || value.includes('\0'))
      throw new PenError('USAGE', { what: 'a variable has a bad name or value', at: name })
  return env
}

/** Threads that pen's supervise process may still start. */
const SUPERVISE_THREADS = 32

/** CPU time is limited too, because a wall-clock limit allows many programs to run at once. */
export function limitsOf(
  { limits }: Policy,
  runAs: 'self' | { readonly uid: number },
  timeMs: number,
  /** Room for other processes of the user. They must not use up the sandbox's share. */
  otherProcesses = 0,
): ProcessLimits {
  const uid = runAs === 'self' ? (process.getuid?.() ?? 0) : runAs.uid
  const now = countProcesses(uid)
  return {
    files: limits.files,
    cpu: Math.ceil((timeMs / 1000) * Math.ceil(limits.cpus)) + 1,
    fileSize: limits.disk,
    processes: now === undefined ? undefined : now + limits.pids + SUPERVISE_THREADS + otherProcesses,
  }
}

export function exitCodeOf(ending: SupervisedEnding): number {
  switch (ending.kind) {
    case 'exit':
      return ending.code
    case 'signal':
      return 128 + (process.getBuiltinModule('node:os').constants.signals[ending.signal] ?? 9)
    case 'not-started':
      return ending.errno === 'ENOENT' ? EXIT.notFound : EXIT.notExecutable
    case 'lost':
      return 128 + 9
  }
}
