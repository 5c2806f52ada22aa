/** A project with a review layer over it, mounted for each command with a real overlayfs, as a sandbox has it. */
import { mkdirSync, mkdtempSync, realpathSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { removeTree } from '../src/base/beneath/remove-tree.ts'
import { Accepted } from '../src/review/accepted.ts'
import { type Application, applyChanges, type Places } from '../src/review/apply-changes.ts'
import type { Change } from '../src/review/change.ts'
import { markChanges } from '../src/review/mark-changes.ts'
import { readChanges } from '../src/review/read-changes.ts'
import type { Operation } from './file-operations.ts'

export class TestLayer {
  readonly base = realpathSync(mkdtempSync(`${tmpdir()}/pen-review-`))
  readonly layer = `${this.base}/layer`
  readonly upper = `${this.layer}/upper`
  readonly workspace: string

  /** In memory, the project is as fast as the machine, whatever else uses the disk. */
  constructor(project: 'on disk' | 'in memory' = 'on disk') {
    for (const path of [this.layer, this.upper, `${this.layer}/merged`]) mkdirSync(path)
    this.workspace = project === 'in memory' ? mkdtempSync('/dev/shm/pen-review-') : `${this.base}/project`
    if (project === 'on disk') mkdirSync(this.workspace)
    symlinkSync(this.workspace, `${this.layer}/lower`)
  }

  /** Runs on the host, in the project. */
  host(script: string): void {
    run(['sh', '-ec', script], this.workspace)
  }

  /** Runs inside, in the merged tree. */
  inside(script: string, input: unknown = null): void {
    const mount = `rm -rf work && mkdir work &&
      mount -t overlay pen -o userxattr,volatile,lowerdir=lower,upperdir=upper,workdir=work merged &&
      cd merged && exec sh -ec "$1"`
    run(
      ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-ec', mount, 'sh', script],
      this.layer,
      input,
    )
  }

  /** The same operations inside. */
  performInside(operations: readonly Operation[], from: number): void {
    this.inside(`exec '${process.execPath}' '${import.meta.dirname}/file-operations.ts' .`, {
      operations,
      from,
    })
  }

  get places(): Places {
    return { layer: this.layer, tree: this.upper, workspace: this.workspace }
  }

  get changes(): readonly Change[] {
    return readChanges(this.upper, this.workspace)
  }

  /** As `kind path`, in the order of paths. */
  get list(): readonly string[] {
    return this.changes.map(
      ({ kind, path, refused }) => `${refused === undefined ? kind : 'refused'} ${path}`,
    )
  }

  /** With conflicts, for a layer that was made at `made`. Nothing is protected. */
  marked(made: number): readonly Change[] {
    const { workspace } = this
    const accepted = new Accepted(this.layer)
    return markChanges(this.changes, { workspace, made, accepted, mayWrite: () => true, protectedPaths: [] })
  }

  accept(
    changes: readonly Change[] = this.changes.filter(({ refused }) => refused === undefined),
  ): Application {
    return applyChanges(changes, this.places, new Accepted(this.layer))
  }

  [Symbol.dispose](): void {
    removeTree(this.workspace)
    removeTree(this.base)
  }
}

function run(argv: string[], cwd: string, input: unknown = null): void {
  const { exitCode, stderr } = Bun.spawnSync(argv, { cwd, stdin: Buffer.from(JSON.stringify(input)) })
  if (exitCode !== 0) throw new Error(`exit ${exitCode}: ${stderr}`)
}
