/**
 * Lists what moves on the host at this moment, in a file of pen's own. A sync that was killed left it, and so did one that
 * met a locked index: then refs and HEAD moved, and the index did not. The next sync makes up for that.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { type At, type GitRunner, recordAt } from '../git/git-runner.ts'
import type { Applied } from './agreement.ts'
import { applyWorktree } from './apply-sync.ts'
import type { SyncPlan, WorktreeMove } from './plan-sync.ts'
import { type RepositoryState, sameHead } from './state.ts'

export type Moves = Pick<SyncPlan, 'refs' | 'worktrees'>

export const movesHead = ({ refs, worktrees }: Moves): boolean => refs.length + worktrees.length > 0

export class MoveJournal {
  readonly #file: string
  readonly #indexFile: string
  /** Of earlier syncs, where the index is locked or an operation is open. */
  #late: readonly WorktreeMove[] = []

  /** `indexFile` is the name of a new index, which a killed sync may have left. */
  constructor(file: string, indexFile: string) {
    this.#file = file
    this.#indexFile = indexFile
  }

  /** Returns what had moved when the last sync was killed. Indexes that can follow now do. */
  async catchUp(git: GitRunner, at: At, theirs: RepositoryState): Promise<Applied> {
    if (!existsSync(this.#file)) return {}
    const { refs, worktrees } = JSON.parse(readFileSync(this.#file, 'utf8')) as Moves
    const late: WorktreeMove[] = []
    for (const { record, from, head, index } of worktrees) {
      const { isBusy, branch, commit } = theirs.heads.get(record) ?? {}
      if (index === undefined) continue
      // What the killed sync did not reach is planned again, and its objects may be gone.
      const move = { record, from: { branch: (head ?? from).branch, commit: index.new }, index }
      if (isBusy) late.push(move)
      else if (branch === move.from.branch && commit === index.new) {
        const more = { message: 'pen: after a sync that was killed', file: this.#indexFile }
        if (!(await applyWorktree(git, at, move, more))) late.push(move)
      } else
        await git({
          script: 'rm -f "$GIT_DIR/$1" "$GIT_DIR/$1.old"',
          args: [this.#indexFile],
          ...recordAt(at, record),
        })
    }
    this.#late = late
    this.end()
    return {
      refs: refs.filter(move => theirs.refs.get(move.name) === move.new),
      worktrees: worktrees.filter(
        ({ record, head }) => head !== undefined && sameHead(theirs.heads.get(record), head),
      ),
    }
  }

  /** Before the first move. */
  begin(moves: Moves): void {
    if (movesHead(moves)) this.#write({ ...moves, worktrees: [...this.#late, ...moves.worktrees] })
  }

  /** After the last move. */
  end(): void {
    if (this.#late.length > 0) this.#write({ refs: [], worktrees: this.#late })
    else rmSync(this.#file, { force: true })
  }

  #write({ refs, worktrees }: Moves): void {
    writeFileAtomically(this.#file, JSON.stringify({ refs, worktrees }))
  }
}
