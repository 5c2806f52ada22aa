/** The pen binary, which does everything that needs locks, engines or a policy: the library only asks it. */
import { collect } from '../base/collect.ts'
import { asPenError, readError } from '../control/messages.ts'
import { findPen, ownFile } from './find-pen.ts'
import { asSandboxError, SandboxError } from './sandbox-error.ts'
import { startByNode } from './start-by-node.ts'

/** The slowest engine, with an image that is not mapped yet. */
const PATIENCE_MS = 240_000
const MOST_SAID = 4 * 2 ** 20

export class PenProgram {
  readonly #path: string
  readonly #cwd: string

  constructor(named: string | undefined, project: string) {
    this.#path = findPen({ named, project, variable: process.env['PEN_PROGRAM'], here: ownFile() })
    this.#cwd = project
  }

  /** The answer of a verb that was asked for JSON. */
  async verb(argv: readonly string[]): Promise<unknown> {
    const { stdout, stderr, code } = await this.#run([...argv, '--json'])
    const failed = code === 0 ? undefined : errorIn(stderr)
    if (failed !== undefined) throw failed
    return parse(code === 0 ? stdout : '', stderr)
  }

  /** The one line that a hidden mode answers with. */
  async ask(mode: string, order: object): Promise<unknown> {
    const { stdout, stderr } = await this.#run([mode], jsonOf(order))
    return parse(stdout, stderr)
  }

  async #run(argv: readonly string[], input?: string) {
    const env = Object.fromEntries(
      Object.entries(process.env).filter((entry): entry is [string, string] => entry[1] !== undefined),
    )
    try {
      const options = {
        // It acts for the user, as it would in their shell.
        env,
        cwd: this.#cwd,
        timeoutMs: PATIENCE_MS,
        maxOutput: MOST_SAID,
        ...(input !== undefined && { input }),
      }
      return await collect([this.#path, ...argv], options, startByNode)
    } catch (error) {
      throw asSandboxError(error)
    }
  }
}

/** A number of any size, or an object in itself, is no part of a policy. */
function jsonOf(order: object): string {
  try {
    return JSON.stringify(order)
  } catch (cause) {
    throw new SandboxError('USAGE', {
      what: 'the policy cannot be written as JSON',
      hint: 'give plain values',
      cause,
    })
  }
}

function parse(stdout: string, stderr: string): unknown {
  try {
    return JSON.parse(stdout)
  } catch (cause) {
    const [first = 'it said nothing'] = stderr.split('\n').filter(Boolean)
    throw new SandboxError('STATE', { what: `pen did not answer: ${first.slice(0, 300)}`, cause })
  }
}

/** What `--json` prints on stderr of a failure. */
function errorIn(stderr: string): Error | undefined {
  for (const line of stderr.split('\n').reverse())
    try {
      const { error } = JSON.parse(line) as { error?: Record<string, unknown> }
      if (error === undefined) continue
      const { code, what, at = null, hint = null } = error
      return asSandboxError(asPenError(readError({ code, what, at, hint })))
    } catch {
      // Another line.
    }
  return undefined
}
