/**
 * The one way by which tools act where no kernel confines them. Every action is asked for here, judged by the policy, written down, and only
 * then done. A program that the policy lets run is past the gate: what it does by itself nobody judges, which is why the sandbox is called soft.
 */
import type { Resolver } from '../gateway/resolve.ts'
import type { PathWorld } from '../policy/path.ts'
import { type Connection, Connector } from './connect.ts'
import { type ExecOptions, type Executed, type ExecWorld, execute } from './exec.ts'
import { GateFiles, type Listed } from './files.ts'
import { removeTree } from './remove-tree.ts'

export type { Connection } from './connect.ts'
export type { ExecOptions, Executed } from './exec.ts'
export type { Listed } from './files.ts'
export { Refused } from './refused.ts'

export interface GateOptions extends Omit<ExecWorld, 'judge'> {
  readonly world: PathWorld
  /** For tests: answers to look-ups. */
  readonly resolver?: Resolver
}

export class Gate {
  readonly #options: GateOptions
  readonly #files: GateFiles
  readonly #connector: Connector

  constructor(options: GateOptions) {
    this.#options = options
    this.#files = new GateFiles(options)
    this.#connector = new Connector({
      network: () => options.policy().network,
      audit: options.audit,
      resolver: options.resolver,
    })
  }

  async read(path: string, { maxBytes }: { readonly maxBytes?: number } = {}) {
    return this.#files.read(path, maxBytes)
  }

  async write(path: string, bytes: Uint8Array | string): Promise<void> {
    this.#files.write(path, bytes)
  }

  async list(path: string): Promise<readonly Listed[]> {
    return this.#files.list(path)
  }

  /** A directory with all in it only when the policy lists `rm`. */
  async delete(path: string, { recursive = false }: { readonly recursive?: boolean } = {}): Promise<void> {
    if (recursive) removeTree(this.#files, this.#options.policy(), path)
    else this.#files.remove(path)
  }

  async exec(argv: readonly string[], options?: ExecOptions): Promise<Executed> {
    return await execute({ ...this.#options, judge: this.#files.judge }, argv, options)
  }

  async connect(host: string, port: number): Promise<Connection> {
    return await this.#connector.connect(host, port)
  }
}
