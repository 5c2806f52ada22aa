import { asWord } from '../base/printable.ts'
import type { Denial } from '../library/denial.ts'
import type { ExecResult } from '../library/exec-options.ts'
import { number, type Tool, text, words } from './tool.ts'

/** Of each stream: what a model reads, not what a file holds. */
const MOST_OUTPUT = 32 * 1024

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
        'ends the command after this long; 120 where nothing is said, and the policy has a ceiling',
      minimum: 0.1,
      maximum: 86_400,
    },
    cwd: { type: 'string', description: 'the directory to run it in, relative to the project' },
    stdin: { type: 'string', description: 'what the command reads from its standard input' },
  },
  required: [],
  either: ['command', 'words'],
  readOnly: false,
  async run(box, given, signal) {
    const seconds = number(given, 'timeout_seconds')
    const result = await box.exec(text(given, 'command') ?? words(given, 'words') ?? [], {
      timeout: seconds === undefined ? undefined : seconds * 1000,
      cwd: text(given, 'cwd'),
      stdin: text(given, 'stdin'),
      maxOutput: MOST_OUTPUT,
      signal,
    })
    const { exitCode, timedOut, limit, denials, truncated } = result
    return { texts: textsOf(result), facts: { exitCode, timedOut, truncated, limit, denials } }
  },
}

function textsOf({ exitCode, timedOut, limit, denials, truncated, stdout, stderr }: ExecResult): string[] {
  const said = [
    timedOut ? `timed out (exit code ${exitCode}); the output so far follows` : `exit code ${exitCode}`,
    ...(truncated ? ['output was left out in the middle: write it to a file, and read that in parts'] : []),
    ...(limit === null ? [] : [`limit reached: ${limit.limit} (${limit.value}, ${limit.reason})`]),
    ...summed(denials),
  ]
  return [
    said.join('\n'),
    ...(stdout === '' ? [] : [`stdout:\n${stdout}`]),
    ...(stderr === '' ? [] : [`stderr:\n${stderr}`]),
  ]
}

const MOST_SHOWN = 10

/** A program that tries ten times was refused one thing. */
function summed(denials: readonly Denial[]): string[] {
  const lines = new Set(denials.map(describeDenial))
  const shown = [...lines].slice(0, MOST_SHOWN)
  return lines.size > MOST_SHOWN ? [...shown, `refused: ${lines.size - MOST_SHOWN} more`] : shown
}

/** These are pen's words, and a model believes them: what the sandbox chose stands in quotes where it is more than a word. */
export const describeDenial = ({ kind, target, reason, why, permission }: Denial): string =>
  `refused: ${kind} ${asWord(target, 120)}: ${why} (${reason})${permission === null ? '' : `; to allow it, the user does this on the host: ${permission}`}`
