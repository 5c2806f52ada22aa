import type { ExitCode } from '../../base/error.ts'
import type { FlagSpecs, FlagValues, PositionalSpecs, PositionalValues } from './flag-spec.ts'
import { parseArguments, refuseUnknown } from './flags.ts'
import type { Terminal } from './terminal.ts'

/** Where a verb runs: the only way to the environment and the terminal, so that tests can give their own. */
export interface CliContext {
  readonly verbs: VerbTable
  readonly groups: readonly VerbGroup[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly terminal: Terminal
}

export interface Invocation<F extends FlagSpecs, P extends PositionalSpecs> extends CliContext {
  readonly flags: FlagValues<F>
  readonly positionals: PositionalValues<P>
  /** The command to run, its flags and all, for verbs that take one. */
  readonly command: readonly string[]
}

/** The parts of a verb that need no knowledge of its flags' types: help and the table work with these. */
export interface VerbDescription {
  /** As typed: `plan`, `policy explain`. */
  readonly name: string
  /** One line, no full stop. */
  readonly summary: string
  /** Paragraphs below the summary in `--help`. */
  readonly details?: string
  /** Whole command lines with what they do. */
  readonly examples: readonly { readonly line: string; readonly does: string }[]
  /** A verb that takes a command: the first word that is no flag begins it, or only what stands after `--`. */
  readonly command?: 'required' | 'optional' | 'after-dashes'
  /** An agent in a sandbox must not start or configure sandboxes: only verbs that do neither say 'allow'. */
  readonly insideSandbox?: 'refuse' | 'allow'
}

export interface VerbSpec<F extends FlagSpecs, P extends PositionalSpecs> extends VerbDescription {
  readonly flags: F
  readonly positionals?: P
  run(invocation: Invocation<F, P>): Promise<ExitCode>
}

/** A verb as the frame sees it. */
export interface Verb extends VerbDescription {
  readonly flags: FlagSpecs
  readonly positionals: PositionalSpecs
  start(argv: readonly string[], context: CliContext): Promise<ExitCode>
}

/** By name. A function for each, so that only the verb in use is evaluated. */
export type VerbTable = Readonly<Record<string, () => Promise<{ readonly verb: Verb }>>>

/** One group of `pen help`. Its verbs have a folder of their own in `cli/verbs/`. */
export interface VerbGroup {
  readonly title: string
  /** The verbs that `pen help` shows; `pen help all` shows every one. */
  readonly common: readonly string[]
  readonly verbs: VerbTable
}

export function defineVerb<const F extends FlagSpecs, const P extends PositionalSpecs = Record<never, never>>(
  spec: VerbSpec<F, P>,
): Verb {
  const { run, positionals, ...rest } = spec
  return {
    ...rest,
    positionals: positionals ?? {},
    // An async function, so that a mistake in the arguments is a rejection like any other failure.
    start: async (argv, context) => {
      const given = parseArguments(spec, argv)
      await refuseUnknown(spec.flags, given.flags)
      return await run({ ...given, ...context })
    },
  }
}
