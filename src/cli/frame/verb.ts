import { EXIT, type ExitCode } from '../../base/error.ts'
import { checkName, type Project } from '../../config/project.ts'
import {
  type FlagSpecs,
  type FlagValues,
  jsonFlag,
  type PositionalSpecs,
  type PositionalValues,
} from './flag-spec.ts'
import { parseArguments } from './flags.ts'
import { errorWithName, nameFlag, projectFor, takesName, terminalWithName, withName } from './sandbox-name.ts'
import type { Terminal } from './terminal.ts'

/** The environment and the terminal of a verb. Tests pass their own. */
export interface CliContext {
  readonly verbs: VerbTable
  readonly groups: readonly VerbGroup[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly terminal: Terminal
}

export interface Invocation<F extends FlagSpecs = FlagSpecs, P extends PositionalSpecs = PositionalSpecs>
  extends CliContext {
  readonly flags: FlagValues<F & typeof jsonFlag>
  readonly positionals: PositionalValues<P>
  /** The command to run with its flags, for verbs that take one. */
  readonly command: readonly string[]
  /** The verb's arguments as typed. */
  readonly argv: readonly string[]
  /** The value of `--name`, which the verbs of `sandbox-name.ts` take. */
  readonly name: string | undefined
  /**
   * The project of the current directory, with the sandbox of `--name`. Reading it fails where no project can be, such as in the home,
   * and for an unknown name.
   */
  readonly project: Project
  /** Prints the result: the data with --json, else the text or its lines. */
  answer(data: unknown, text: string | readonly string[]): void
}

/** The parts of a verb that do not depend on the types of its flags. */
export interface VerbDescription {
  /** As the user types it: `plan`, `policy explain`. */
  readonly name: string
  /** One line without a full stop. `pen help` has room for 48 characters. */
  readonly summary: string
  /** Paragraphs below the summary in `--help`. */
  readonly details?: string
  /** Set if the verb takes a command, which begins at the first argument that is no flag, or only after `--`. */
  readonly command?: 'required' | 'optional' | 'after-dashes'
  /** 'allow' only for verbs that neither start nor configure a sandbox: agents inside must not do that. */
  readonly insideSandbox?: 'refuse' | 'allow'
}

export interface VerbSpec<F extends FlagSpecs, P extends PositionalSpecs> extends VerbDescription {
  /** False for a verb whose output is never JSON. */
  readonly json?: boolean
  readonly flags?: F
  readonly positionals?: P
  /** Complete command lines, each with its effect. */
  readonly examples: Readonly<Record<string, string>>
  /** Without an exit code, the verb succeeded. */
  run(invocation: Invocation<F, P>): Promise<ExitCode | undefined>
}

/** A verb with its flags' types erased. */
export interface Verb extends VerbDescription {
  readonly flags: FlagSpecs
  readonly positionals: PositionalSpecs
  readonly examples: readonly { readonly line: string; readonly does: string }[]
  start(argv: readonly string[], context: CliContext): Promise<ExitCode>
}

/** By name. Each value is a function, so that only the verb in use is loaded. */
export type VerbTable = Readonly<Record<string, () => Promise<{ readonly verb: Verb }>>>

/** One group of `pen help`. Its verbs are in one folder of `cli/verbs/`. */
export interface VerbGroup {
  readonly title: string
  /** The verbs that `pen help` shows; `pen help all` shows every one. */
  readonly common: readonly string[]
  readonly verbs: VerbTable
}

/** Every verb gets --json, unless it prints something else than text: `json: false`. */
export function defineVerb<
  const F extends FlagSpecs = Record<never, never>,
  const P extends PositionalSpecs = Record<never, never>,
>(spec: VerbSpec<F, P>): Verb {
  const { run, json = true, ...rest } = spec
  const flags = { ...spec.flags, ...(takesName(spec.name) && nameFlag), ...(json && jsonFlag) } as F &
    typeof jsonFlag
  const positionals = spec.positionals ?? ({} as P)
  const syntax = { ...rest, flags, positionals }
  return {
    ...syntax,
    examples: Object.entries(spec.examples).map(([line, does]) => ({ line, does })),
    // Async, so that a mistake in the arguments rejects like any other failure.
    start: async (argv, context) => {
      const given = parseArguments(syntax, argv)
      const { name } = given.flags as { readonly name?: string }
      if (name !== undefined) checkName(name)
      try {
        const code = await run({
          ...given,
          ...context,
          argv,
          name,
          terminal: terminalWithName(context.terminal, name),
          get project() {
            return projectFor(spec.name, name)
          },
          answer(data, text) {
            if (given.flags.json) context.terminal.printJson(data)
            else for (const line of [text].flat()) context.terminal.print(withName(line, name))
          },
        })
        return code ?? EXIT.ok
      } catch (error) {
        throw errorWithName(error, name)
      }
    },
  }
}
