/**
 * The gate: the only way for tools to act when no kernel isolation exists. Every action is judged by the policy,
 * recorded, and then done. A program that the policy allows is past the gate, and its own actions are not judged. That
 * is why the sandbox is called soft.
 */
import type { Resolver } from '../../../gateway/dial/resolve.ts'
import { type Connection, Connector } from './connect.ts'
import { type Admitted, admit, type ExecOptions, type ExecWorld } from './exec.ts'
import { type FileOptions, GateFiles, type Listing, type ReadBytes, type ReadOptions } from './files.ts'
import { type FoundFile, filesBelow, type Scope } from './files-below.ts'
import { removeTree } from './remove-tree.ts'

export type { Connection } from './connect.ts'
export type { Admitted, ExecOptions } from './exec.ts'
export type { Listing } from './files.ts'
export type { FoundFile } from './files-below.ts'
export { ActionFailed, Refused } from './refused.ts'

export interface GateOptions extends FileOptions, Omit<ExecWorld, 'judge'> {
  /** For tests: DNS answers. */
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

  async read(path: string, options?: ReadOptions): Promise<ReadBytes> {
    return this.#files.read(path, options)
  }

  async write(path: string, bytes: Uint8Array | string, executable = false): Promise<void> {
    this.#files.write(path, bytes, executable)
  }

  async list(path: string, most: number): Promise<Listing> {
    return this.#files.list(path, most)
  }

  /** The files that a search may read. */
  below(path: string, scope: Scope): Generator<FoundFile> {
    return filesBelow(this.#files, path, scope)
  }

  /** Deletes a directory with its contents only when the policy lists `rm`. */
  async delete(path: string, { recursive = false }: { readonly recursive?: boolean } = {}): Promise<void> {
    if (recursive) removeTree(this.#files, this.#options.policy(), path)
    else this.#files.remove(path)
  }

  /** The caller must start the file that was judged. */
  exec(argv: readonly string[], options?: ExecOptions): Admitted {
    return admit({ ...this.#options, judge: this.#files.judge }, argv, options)
  }

  async connect(host: string, port: number): Promise<Connection> {
    return await this.#connector.connect(host, port)
  }
}
