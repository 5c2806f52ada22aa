import { asWord } from '../base/printable.ts'
import type { Denial } from '../library/denial.ts'
import type { ExecResult } from '../library/exec-options.ts'
import { SandboxError } from '../library/sandbox-error.ts'
import { HeardOutput, legible } from './heard-output.ts'
import { MOST_SHOWN } from './shown.ts'
import { number, type Tool, type ToolResult, text, words } from './tool.ts'

const MOST_DENIALS = 10

const DENIAL = {
  type: 'object',
  properties: {
    kind: { type: 'string', enum: ['network', 'file', 'tool'] },
    target: { type: 'string', description: 'host:port, a path, or a program' },
    reason: { type: 'string' },
    why: { type: 'string' },
    permission: { type: ['string', 'null'], description: 'what the user runs on the host to allow it' },
    by: {
      type: 'string',
      enum: ['command', 'unknown'],
      description: 'unknown: another command ran at the time, and it may have been refused to that',
    },
  },
}

const LIMIT = {
  type: ['object', 'null'],
  description: 'the limit of the sandbox that was reached',
  properties: {
    limit: { type: 'string' },
    value: { type: 'string' },
    reason: { type: 'string', description: 'killed or refused' },
    why: { type: 'string' },
    hint: { type: ['string', 'null'] },
  },
}

export const runTool: Tool = {
  name: 'run',
  title: 'Run a command',
  description:
    'Runs a command in the sandbox of this project and waits for its end. Files of the project have the same paths as on the host. Network, files and programs are bounded by a policy: what was refused is told, with its reason and with what the user would run to allow it. Do not look for a way around a refusal; use request_permission.',
  properties: {
    command: { type: 'string', description: 'a line for the shell of the sandbox' },
    words: {
      type: 'array',
      items: { type: 'string' },
      description: 'or a program and its arguments, which no shell reads: for a policy without a shell',
    },
    timeout_seconds: {
      type: 'number',
      description:
        'ends the command after this long; 120 where nothing is said. More than the policy’s exec.ceiling is refused',
      minimum: 0.1,
      maximum: 86_400,
    },
    cwd: { type: 'string', description: 'the directory to run it in, relative to the project' },
    stdin: { type: 'string', description: 'what the command reads from its standard input' },
  },
  required: [],
  either: ['command', 'words'],
  // The order of a result: a client that cuts it keeps what pen says.
  output: {
    exitCode: { type: 'integer', description: '124 after a timeout, 128+n after signal n' },
    timedOut: { type: 'boolean' },
    truncated: { type: 'boolean', description: 'whether the middle of stdout or stderr is left out' },
    binary: {
      type: 'array',
      items: { type: 'string' },
      description: 'the streams with bytes that are no text, shown as U+FFFD',
    },
    limit: LIMIT,
    denials: { type: 'array', items: DENIAL, description: 'what the policy refused meanwhile' },
    moreDenials: { type: 'integer', description: 'denials that are not listed' },
    stdout: { type: 'string' },
    stderr: { type: 'string' },
  },
  effect: { readOnly: false, destructive: true, idempotent: false, openWorld: true },
  async run(box, given, { signal, report }) {
    const seconds = number(given, 'timeout_seconds')
    const heard = new HeardOutput(MOST_SHOWN)
    try {
      const result = await box.exec(text(given, 'command') ?? words(given, 'words') ?? [], {
        timeout: seconds === undefined ? undefined : seconds * 1000,
        cwd: text(given, 'cwd'),
        stdin: text(given, 'stdin'),
        maxOutput: MOST_SHOWN,
        signal,
        onOutput: (stream, bytes) => {
          heard.push(stream, bytes)
          report(`running; ${heard.size} bytes of output so far`)
        },
      })
      return resultOf(result, heard.binary)
    } catch (error) {
      if (!(error instanceof SandboxError) || heard.size === 0) throw error
      const [stdout, stderr] = [heard.text('stdout'), heard.text('stderr')]
      return { error, texts: outputTexts(stdout, stderr), facts: { stdout, stderr } }
    }
  },
}

function resultOf(result: ExecResult, binary: readonly string[]): ToolResult {
  const { exitCode, timedOut, limit, truncated } = result
  const [stdout, stderr] = [legible(result.stdout), legible(result.stderr)]
  const distinct = distinctDenials(result.denials)
  const denials = distinct.slice(0, MOST_DENIALS)
  const moreDenials = distinct.length - denials.length
  const said = [
    timedOut ? `timed out (exit code ${exitCode}); the output so far follows` : `exit code ${exitCode}`,
    ...(truncated ? ['output was left out in the middle: write it to a file, and read that in parts'] : []),
    ...(binary.length === 0 ? [] : [`not text: ${binary.join(' and ')}; pass it through base64 or od`]),
    ...(limit === null ? [] : [describeLimit(limit)]),
    ...denials.map(describeDenial),
    ...(moreDenials === 0 ? [] : [`refused: ${moreDenials} more`]),
  ]
  return {
    texts: [said.join('\n'), ...outputTexts(stdout, stderr)],
    facts: {
      exitCode,
      timedOut,
      truncated,
      ...(binary.length > 0 && { binary }),
      limit,
      denials,
      ...(moreDenials > 0 && { moreDenials }),
      stdout,
      stderr,
    },
  }
}

const outputTexts = (stdout: string, stderr: string): string[] => [
  ...(stdout === '' ? [] : [`stdout:\n${stdout}`]),
  ...(stderr === '' ? [] : [`stderr:\n${stderr}`]),
]

/** A program that tries ten times was refused one thing. */
function distinctDenials(denials: readonly Denial[]): readonly Omit<Denial, 'time'>[] {
  const byText = new Map(denials.map(({ time: _time, ...denial }) => [describeDenial(denial), denial]))
  return [...byText.values()]
}

const describeLimit = ({ limit, why, reason, hint }: NonNullable<ExecResult['limit']>): string =>
  `limit reached: ${limit} (${reason}): ${why}${hint === null ? '' : `; to raise it, the user does this on the host: ${hint}`}`

/** These are pen's words, and a model believes them: what the sandbox chose stands in quotes where it is more than a word. */
export const describeDenial = ({ kind, target, reason, why, permission, by }: Omit<Denial, 'time'>): string =>
  `refused${by === 'unknown' ? ' to this command, or to another that ran at the time' : ''}: ${kind} ${asWord(target, 120)}: ${why} (${reason})${permission === null ? '' : `; to allow it, the user does this on the host: ${permission}`}`
