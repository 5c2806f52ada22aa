/**
 * Lists what moves on the host at this moment, in a file of pen's own. A sync that was killed left it, and so did one that
 * met a locked index: then refs and HEAD moved, and the index did not. The next sync makes up for that.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import type { GitRunner } from '../git/git-runner.ts'
import type { Applied } from './agreement.ts'
import { type At, applyIndex } from './apply-sync.ts'
import type { IndexMove, SyncPlan } from './plan-sync.ts'
import { type Head, type RepositoryState, sameHead } from './state.ts'

export type Moves = Pick<SyncPlan, 'refs' | 'heads' | 'indexes'>

export const movesHead = ({ refs, heads }: Moves): boolean => refs.length + heads.length > 0

export class MoveJournal {
  readonly #file: string
  /** Of earlier syncs, where the index is locked or an operation is open. */
  #late: readonly IndexMove[] = []

  constructor(file: string) {
    this.#file = file
  }

  /** Returns what had moved when the last sync was killed. Indexes that can follow now do. */
  async catchUp(git: GitRunner, at: At, theirs: RepositoryState): Promise<Applied> {
    if (!existsSync(this.#file)) return {}
    const { refs, heads, indexes } = JSON.parse(readFileSync(this.#file, 'utf8')) as Moves
    const headOf = ({ record }: IndexMove): Head | undefined => theirs.heads.get(record)
    this.#late = indexes.filter(move => headOf(move)?.isBusy)
    for (const move of indexes) {
      // What the killed sync did not reach is planned again, and its objects may be gone.
      const { branch, commit, isBusy } = headOf(move) ?? {}
      if (!isBusy && branch === move.branch && commit === move.new) await applyIndex(git, at, move)
    }
    this.end()
    return {
      refs: refs.filter(move => theirs.refs.get(move.name) === move.new),
      heads: heads.filter(move => sameHead(theirs.heads.get(move.record), move.head)),
    }
  }

  /** Before the first move. */
  begin(moves: Moves): void {
    if (movesHead(moves)) this.#write({ ...moves, indexes: [...this.#late, ...moves.indexes] })
  }

  /** After the last move. */
  end(): void {
    if (this.#late.length > 0) this.#write({ refs: [], heads: [], indexes: this.#late })
    else rmSync(this.#file, { force: true })
  }

  #write(moves: Moves): void {
    writeFileAtomically(this.#file, JSON.stringify(moves))
  }
}
