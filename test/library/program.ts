/** Talks to driver.mjs, the program that uses the library. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import type { ExecResult } from '../../src/library/exec-options.ts'
import type { Listing, SearchResult } from '../../src/library/files.ts'
import type { PermissionAnswer } from '../../src/library/permissions.ts'
import { PEN } from '../conformance/launcher.ts'
import type { Place } from './place.ts'

export const LIBRARY = join(PEN, '../index.js')

export interface Failure {
  readonly name: string
  readonly code: string
  readonly what: string
  readonly hint?: string
  readonly retry: boolean
  readonly permission?: string
  readonly message: string
  readonly isOurs: boolean
}

export class Failed extends Error {
  readonly failure: Failure
  constructor(failure: Failure) {
    super(`${failure.code}: ${failure.message}`)
    this.failure = failure
  }
}

interface Values {
  start: { id: string; project: string; backend: string; isolation: string; joined: boolean; notes: string[] }
  exec: ExecResult
  listen: ExecResult
  many: ExecResult[]
  stream: { pieces: [string, string][]; result: ExecResult }
  unread: ExecResult
  late: { stdout: string; read: string }
  child: { stdout: string; stderr: string; events: unknown[][] }
  slow: number
  pair: ExecResult[]
  throw: null
  listenTo: null
  leave: null
  forward: { address: string; port: number }
  unforward: null
  read: string
  write: null
  delete: null
  list: Listing
  search: SearchResult
  allow: null
  grant: null
  revoke: null
  request: PermissionAnswer
  events: { name: string; value: Record<string, unknown> }[]
  stop: null
  dispose: null
}

export type Runtime = 'node' | 'bun'

export class Program {
  readonly child: ChildProcessWithoutNullStreams
  readonly #lines: AsyncIterator<string>
  readonly #interface: Interface
  #said = ''

  constructor(place: Place, runtime: Runtime = 'node') {
    const [program, ...rest] = place.argv(
      runtime === 'node' ? 'node' : process.execPath,
      join(import.meta.dir, 'driver.mjs'),
      LIBRARY,
    )
    this.child = spawn(program, rest, { cwd: place.root, env: place.env })
    this.child.stderr.on('data', (data: Buffer) => {
      this.#said += data.toString()
    })
    this.#interface = createInterface({ input: this.child.stdout })
    this.#lines = this.#interface[Symbol.asyncIterator]()
  }

  async ask<K extends keyof Values>(op: K, order: object = {}): Promise<Values[K]> {
    this.child.stdin.write(`${JSON.stringify({ op, ...order })}\n`)
    const { value } = await this.#lines.next()
    if (value === undefined) throw new Error(`the program ended: ${this.#said}`)
    const answer = JSON.parse(value) as { ok: boolean; value: Values[K]; error: Failure }
    if (!answer.ok) throw new Failed(answer.error)
    return answer.value
  }

  exec(command: string | readonly string[], options: object = {}): Promise<ExecResult> {
    return this.ask('exec', { command, options })
  }

  async failure<K extends keyof Values>(op: K, order: object = {}): Promise<Failure> {
    try {
      await this.ask(op, order)
    } catch (error) {
      if (error instanceof Failed) return error.failure
      throw error
    }
    throw new Error(`${op} did not fail`)
  }

  /** Like a program that ends without cleanup. */
  async kill(): Promise<void> {
    const gone = new Promise(resolve => this.child.once('close', resolve))
    this.child.kill('SIGKILL')
    await gone
  }

  async end(): Promise<void> {
    if (this.child.exitCode !== null || this.child.signalCode !== null) return
    const gone = new Promise(resolve => this.child.once('close', resolve))
    this.child.stdin.end()
    const late = setTimeout(() => this.child.kill('SIGKILL'), 5000)
    await gone
    clearTimeout(late)
  }
}

export async function withProgram(
  place: Place,
  runtime: Runtime,
  body: (program: Program) => Promise<void>,
): Promise<void> {
  const program = new Program(place, runtime)
  try {
    await body(program)
  } finally {
    await program.end()
  }
}
