import { asWord } from '../base/printable.ts'
import { CapturedOutput } from '../library/captured-output.ts'
import type { Denial } from '../library/denial.ts'
import type { ExecResult } from '../library/exec-options.ts'
import { SandboxError } from '../library/sandbox-error.ts'
import { MAX_RESULT } from './result-size.ts'
import { number, strings, type Tool, type ToolResult, text, WRITES } from './tool.ts'

const MAX_DENIALS = 10

const DENIAL = {
  type: 'object',
  properties: {
    kind: { type: 'string', enum: ['network', 'file', 'tool'] },
    target: { type: 'string', description: 'host:port, a path, or a program' },
    reason: { type: 'string' },
    why: { type: 'string' },
    permission: {
      type: ['string', 'null'],
      description: 'the command that allows it; the user runs it on the host',
    },
    by: {
      type: 'string',
      enum: ['command', 'unknown'],
      description: 'unknown: it may belong to another command that ran at the same time',
    },
  },
}

const LIMIT = {
  type: ['object', 'null'],
  description: 'the limit of the sandbox that was reached, or null',
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
    'Runs a command in the sandbox of this project and waits for its end. Project files have the same paths as on the host. A policy limits network, files and programs. The result lists each refusal, its reason, and the command with which the user allows it. Do not work around a refusal; use request_permission.',
  properties: {
    command: { type: 'string', description: 'a command line for the shell of the sandbox' },
    argv: {
      type: 'array',
      items: { type: 'string' },
      description: 'or a program and its arguments, without a shell',
    },
    timeout_seconds: {
      type: 'number',
      description:
        'kills the command after this time; default: 120. A value above exec.ceiling of the policy is refused',
      minimum: 0.1,
      maximum: 86_400,
    },
    cwd: { type: 'string', description: 'the working directory, relative to the project' },
    stdin: { type: 'string', description: 'the standard input of the command' },
  },
  required: [],
  exactlyOneOf: ['command', 'argv'],
  // In the order of the result: a client that truncates it keeps pen's part.
  output: {
    exitCode: { type: 'integer', description: '124 after a timeout, 128+n after signal n' },
    timedOut: { type: 'boolean' },
    truncated: { type: 'boolean', description: 'whether the middle of stdout or stderr is missing' },
    binary: {
      type: 'array',
      items: { type: 'string' },
      description: 'the streams with bytes that are not text, shown as U+FFFD',
    },
    limit: LIMIT,
    denials: { type: 'array', items: DENIAL, description: 'what the policy refused' },
    moreDenials: { type: 'integer', description: 'denials that are not listed' },
    stdout: { type: 'string' },
    stderr: { type: 'string' },
  },
  effect: { ...WRITES, idempotentHint: false, openWorldHint: true },
  async run(box, args, { signal, report }) {
    const seconds = number(args, 'timeout_seconds')
    const streams = { stdout: new StreamedOutput(), stderr: new StreamedOutput() }
    const size = (): number => streams.stdout.size + streams.stderr.size
    try {
      const result = await box.exec(text(args, 'command') ?? strings(args, 'argv') ?? [], {
        timeout: seconds === undefined ? undefined : seconds * 1000,
        cwd: text(args, 'cwd'),
        stdin: text(args, 'stdin'),
        maxOutput: MAX_RESULT,
        signal,
        onOutput: (stream, bytes) => {
          streams[stream].push(bytes)
          report(`running; ${size()} bytes of output so far`)
        },
      })
      const binary = (['stdout', 'stderr'] as const).filter(stream => streams[stream].isBinary)
      return resultOf(result, binary)
    } catch (error) {
      if (!(error instanceof SandboxError) || size() === 0) throw error
      const [stdout, stderr] = [withoutNul(streams.stdout.text()), withoutNul(streams.stderr.text())]
      return { error, texts: outputTexts(stdout, stderr), facts: { stdout, stderr } }
    }
  },
}

/** The output so far: for a sandbox that ends before the command, and to detect binary output. */
class StreamedOutput extends CapturedOutput {
  readonly #decoder = new TextDecoder('utf-8', { fatal: true })
  size = 0
  /** NUL bytes, or invalid UTF-8. */
  isBinary: boolean = false

  constructor() {
    super(MAX_RESULT)
  }

  override push(bytes: Uint8Array): void {
    super.push(bytes)
    this.size += bytes.length
    if (this.isBinary) return
    try {
      this.#decoder.decode(bytes, { stream: true })
      this.isBinary = bytes.includes(0)
    } catch {
      this.isBinary = true
    }
  }
}

/** Replaces NUL bytes: each takes six characters of JSON and means nothing to a model. */
const withoutNul = (text: string): string => text.replaceAll('\0', '\ufffd')

function resultOf(result: ExecResult, binary: readonly string[]): ToolResult {
  const { exitCode, timedOut, limit, truncated } = result
  const [stdout, stderr] = [withoutNul(result.stdout), withoutNul(result.stderr)]
  const distinct = distinctDenials(result.denials)
  const denials = distinct.slice(0, MAX_DENIALS)
  const moreDenials = distinct.length - denials.length + result.moreDenials
  const summary = [
    timedOut ? `timed out (exit code ${exitCode}); the output so far follows` : `exit code ${exitCode}`,
    ...(truncated ? ['the middle of the output is missing: write it to a file and read that in parts'] : []),
    ...(binary.length === 0 ? [] : [`not text: ${binary.join(' and ')}; pipe it through base64 or od`]),
    ...(limit === null ? [] : [describeLimit(limit)]),
    ...denials.map(describeDenial),
    ...(moreDenials === 0 ? [] : [`refused: ${moreDenials} more`]),
  ]
  return {
    texts: [summary.join('\n'), ...outputTexts(stdout, stderr)],
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

/** A program that retries ten times has one distinct denial. */
function distinctDenials(denials: readonly Denial[]): readonly Omit<Denial, 'time'>[] {
  const byText = new Map(denials.map(({ time: _time, ...denial }) => [describeDenial(denial), denial]))
  return [...byText.values()]
}

const describeLimit = ({ limit, why, reason, hint }: NonNullable<ExecResult['limit']>): string =>
  `limit reached: ${limit} (${reason}): ${why}${hint === null ? '' : `; to raise it, the user runs on the host: ${hint}`}`

/** A model trusts this text. A target of the sandbox's choice is quoted if it is more than one word. */
export const describeDenial = ({ kind, target, reason, why, permission, by }: Omit<Denial, 'time'>): string =>
  `refused${by === 'unknown' ? ' (to this command or to another that ran at the same time)' : ''}: ${kind} ${asWord(target, 120)}: ${why} (${reason})${permission === null ? '' : `; to allow it, the user runs on the host: ${permission}`}`
