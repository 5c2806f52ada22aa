/**
 * What both repositories have had since the last sync. It grows by what both showed alike when they were read, and by what
 * was applied. So a side that goes on during a sync changes nothing in it, and its next step is seen as a step.
 */
import type { RefMove, Synced, WorktreeMove } from './plan-sync.ts'
import { type Head, type RepositoryState, sameHead } from './state.ts'

export class Agreement implements Synced {
  readonly refs: Map<string, string>
  readonly heads: Map<string, Head>
  readonly stashes: Set<string>
  readonly operations: Map<string, string>

  constructor({ refs, heads, stashes, operations = new Map() }: Synced) {
    this.refs = new Map(refs)
    this.heads = new Map(heads)
    this.stashes = new Set(stashes)
    this.operations = new Map(operations)
  }

  /** Where both differ, the agreement of before stays, so that the difference is seen again. */
  addSame(own: RepositoryState, theirs: RepositoryState, records: readonly string[]): void {
    for (const name of new Set([...this.refs.keys(), ...own.refs.keys()])) {
      const id = own.refs.get(name)
      if (id !== theirs.refs.get(name)) continue
      if (id === undefined) this.refs.delete(name)
      else this.refs.set(name, id)
    }
    for (const record of records) {
      const head = own.heads.get(record)
      if (head !== undefined && sameHead(head, theirs.heads.get(record))) this.heads.set(record, head)
      const { operation } = head ?? {}
      if (operation === undefined) this.operations.delete(record)
      else if (operation === theirs.heads.get(record)?.operation) this.operations.set(record, operation)
    }
    const [here, there] = [new Set(own.stashes), new Set(theirs.stashes)]
    for (const id of this.stashes) if (!here.has(id) && !there.has(id)) this.stashes.delete(id)
    for (const id of here) if (there.has(id)) this.stashes.add(id)
  }

  addApplied({ refs = [], worktrees = [], stashes = [] }: Applied): void {
    for (const { name, new: id } of refs) this.refs.set(name, id)
    for (const { record, head } of worktrees) if (head !== undefined) this.heads.set(record, head)
    for (const id of stashes) this.stashes.add(id)
  }
}

export interface Applied {
  readonly refs?: readonly RefMove[]
  readonly worktrees?: readonly WorktreeMove[]
  readonly stashes?: readonly string[]
}
