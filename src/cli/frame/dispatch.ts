import { EXIT, type ExitCode, PenError } from '../../base/error.ts'
import { showPhases } from '../../base/phases.ts'
import { checkArguments } from './arguments.ts'
import { findVerb } from './find-verb.ts'
import { ownFlags } from './flags.ts'
import { meantGlobalFlag } from './meant-flag.ts'
import { exitCodeOf, reportJson, reportText } from './report.ts'
import { OutputClosed } from './terminal.ts'
import type { CliContext, Verb } from './verb.ts'

/** The code that a shell reports for a program killed by SIGPIPE. */
const EXIT_OUTPUT_CLOSED = 128 + 13

/** Runs the verb that `argv` names and returns the exit code. Never throws: failures are printed to stderr. */
export async function dispatch(argv: readonly string[], context: CliContext): Promise<ExitCode> {
  let json = mentionsJson(argv)
  let debug = context.env['PEN_DEBUG'] === '1'
  try {
    checkArguments(argv)
    const words = withVerb(argv)
    const found = await findVerb(words, context.verbs)
    const flags = ownFlags(found.is === 'verb' ? found.verb : { flags: {} }, found.rest)
    json = flags.includes('--json')
    // --help wins over mistakes in the other arguments.
    if (flags.includes('--help') || flags.includes('-h')) {
      const { showHelp } = await import('../verbs/maintenance/help.ts')
      await showHelp(words.slice(0, words.length - found.rest.length), json, context)
      return EXIT.ok
    }
    if (found.is === 'group')
      throw new PenError('USAGE', {
        what: `pen ${found.name} needs a subcommand`,
        hint: `pen ${found.name} --help`,
      })
    refuseInsideSandbox(found.verb, context)
    debug ||= flags.includes('--debug')
    if (debug) await printPhases(context)
    return await found.verb.start(found.rest, context)
  } catch (error) {
    return fail(error, json, context, debug)
  }
}

/** Prints a failure and returns its exit code. */
export function fail(
  error: unknown,
  json: boolean,
  { env, terminal }: Pick<CliContext, 'env' | 'terminal'>,
  debug = env['PEN_DEBUG'] === '1',
): ExitCode {
  if (error instanceof OutputClosed) return EXIT_OUTPUT_CLOSED
  if (json) terminal.note(reportJson(error))
  else terminal.note(reportText(error, terminal.paintNote, debug))
  return exitCodeOf(error)
}

/** A phase is dropped when stderr is full: pen must not wait for its reader. A terminal in raw mode needs the `\r`. */
async function printPhases({ terminal }: CliContext): Promise<void> {
  const { takesNow } = await import('../../base/kernel/descriptor.ts')
  const { isTerminal } = await import('../../terminal/termios.ts')
  const end = isTerminal(2) ? '\r\n' : '\n'
  showPhases(line => {
    if (takesNow(2)) terminal.note(`pen: ${line}${end}`)
  })
}

/** Whether to report JSON, for failures before the verb is known. */
export function mentionsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--')
  return argv.slice(0, end < 0 ? argv.length : end).includes('--json')
}

function withVerb(argv: readonly string[]): readonly string[] {
  const [first, ...rest] = argv
  if (first === undefined) throw new PenError('USAGE', { what: 'no verb given', hint: 'pen help' })
  if (first === '--help' || first === '-h') return ['help', ...rest]
  if (first === '--version' || first === '-V') return ['version', ...rest]
  if (!first.startsWith('-')) return argv
  const meant = meantGlobalFlag(first)
  throw new PenError('USAGE', {
    what: `unknown flag ${first}`,
    at: 'pen',
    hint: meant ? `did you mean ${meant}?` : 'flags come after the verb; see pen help',
  })
}

/** Catches honest mistakes only. An agent can unset the variable, but the sandbox still confines it. */
function refuseInsideSandbox(verb: Verb, { env }: CliContext): void {
  const mark = env['AGENT_IN_SANDBOX']
  if (verb.insideSandbox === 'allow' || mark === undefined || mark === '' || mark === '0') return
  throw new PenError('INSIDE_SANDBOX', {
    what: `pen ${verb.name} does not work inside a sandbox`,
    at: 'AGENT_IN_SANDBOX',
    hint: 'run it on the host',
  })
}
