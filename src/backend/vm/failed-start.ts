/** Why a virtual machine did not start: what failed, how QEMU and virtiofsd ended, and what they printed last. */
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import type { Running } from '../backend.ts'
import type { BootedMachine } from './boot.ts'
import type { FileServer } from './file-server.ts'
import type { LastOutput } from './last-output.ts'

/** Each has at most 160 characters. */
const MOST_LINES = 3

export class FailedStart {
  readonly #causes: string[] = []
  readonly #outputs: readonly (readonly [name: string, output: LastOutput])[]
  #isComplete: boolean = false

  constructor(machine: BootedMachine, server: FileServer) {
    this.#outputs = [
      ['QEMU', machine.errors],
      ['virtiofsd', server.errors],
      ['the guest', machine.console],
    ]
    this.#watch('QEMU', machine.running)
    this.#watch('virtiofsd', server.running)
  }

  /** A reason may come from the guest, by an answer of QEMU's. */
  because(why: string): void {
    if (!this.#isComplete) this.#causes.push(printable(why, 200))
  }

  /** pen ends the other parts now. That is no reason. */
  complete(): void {
    this.#isComplete = true
  }

  /** Call it when QEMU and virtiofsd have ended. */
  async error(): Promise<PenError> {
    const printed = await Promise.all(
      this.#outputs.map(async ([name, output]) => ({ name, lines: await output.lastLines(MOST_LINES) })),
    )
    const said = printed.filter(({ lines }) => lines !== '').map(({ name, lines }) => `${name}: ${lines}`)
    return notStarted([...this.#causes, ...said].join('; '))
  }

  static stopped(): PenError {
    return notStarted('it was stopped')
  }

  #watch(name: string, { ended }: Running): void {
    ended.then(
      ending =>
        this.because(`${name} ended with ${ending.kind === 'exit' ? exitOf(ending.code) : 'SIGKILL'}`),
      (error: unknown) => this.because(`${name}: ${error instanceof Error ? error.message : 'not started'}`),
    )
  }
}

/** Bubblewrap reports a signal as a shell does. */
const exitOf = (code: number): string => (code > 128 ? `signal ${code - 128}` : `exit code ${code}`)

const notStarted = (why: string): PenError =>
  new PenError('BACKEND', {
    what: `the virtual machine did not start (${why})`,
    hint: 'run `pen doctor` to test it; isolations "process" and "container" need no virtual machine',
  })
