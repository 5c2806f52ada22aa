/** Runs the pen binary. Locks, engines and policies belong to the binary; the library only calls it. */
import { collect } from '../base/collect.ts'
import { asPenError, readError } from '../control/messages.ts'
import { findPen, ownFile } from './find-pen.ts'
import { asSandboxError, SandboxError } from './sandbox-error.ts'
import { startByNode } from './start-by-node.ts'

/** Enough for the slowest engine with a cold image. */
const TIMEOUT_MS = 240_000
const MAX_OUTPUT = 4 * 2 ** 20

export class PenProgram {
  readonly #path: string
  readonly #cwd: string

  constructor(named: string | undefined, project: string) {
    this.#path = findPen({ named, project, variable: process.env['PEN_PROGRAM'], here: ownFile() })
    this.#cwd = project
  }

  /** Runs a verb with `--json` and returns its answer. */
  async verb(argv: readonly string[]): Promise<unknown> {
    const { stdout, stderr, code } = await this.#run([...argv, '--json'])
    const failed = code === 0 ? undefined : errorIn(stderr)
    if (failed !== undefined) throw failed
    return parse(code === 0 ? stdout : '', stderr)
  }

  /** Runs a hidden mode and returns its one line of JSON. */
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
        // The same environment as in the user's shell.
        env,
        cwd: this.#cwd,
        timeoutMs: TIMEOUT_MS,
        maxOutput: MAX_OUTPUT,
        ...(input !== undefined && { input }),
      }
      return await collect([this.#path, ...argv], options, startByNode)
    } catch (error) {
      throw asSandboxError(error)
    }
  }
}

/** A BigInt and a cyclic object have no JSON form. */
function jsonOf(order: object): string {
  try {
    return JSON.stringify(order)
  } catch (cause) {
    throw new SandboxError('USAGE', {
      what: 'the policy cannot be written as JSON',
      hint: 'use plain objects, arrays, strings, numbers and booleans',
      cause,
    })
  }
}

function parse(stdout: string, stderr: string): unknown {
  try {
    return JSON.parse(stdout)
  } catch (cause) {
    const [first = 'no output'] = stderr.split('\n').filter(Boolean)
    throw new SandboxError('STATE', { what: `the pen binary failed: ${first.slice(0, 300)}`, cause })
  }
}

/** The error that `--json` prints on stderr. */
function errorIn(stderr: string): Error | undefined {
  for (const line of stderr.split('\n').reverse())
    try {
      const { error } = JSON.parse(line) as { error?: Record<string, unknown> }
      if (error === undefined) continue
      const { code, what, at = null, hint = null } = error
      return asSandboxError(asPenError(readError({ code, what, at, hint })))
    } catch {
      // Not an error in JSON. Try the previous line.
    }
  return undefined
}
