/**
 * How much the syncs of one run may bring to the host. A sandbox can make refs and objects for ever, and delete its own
 * copies. What is over the budget stays in the sandbox. `pen git import` starts a new budget: a person asked for more.
 */
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { type Bytes, showBytes } from '../../base/quantity.ts'

const GIB = 1024 ** 3

interface Amounts {
  /** New names of refs. */
  readonly refs: number
  /** Each is a line in a log of the host's. */
  readonly moves: number
  readonly objects: number
  /** In packs and git-lfs objects. */
  readonly bytes: number
}

const NOTHING: Amounts = { refs: 0, moves: 0, objects: 0, bytes: 0 }
const MOST: Amounts = { refs: 5000, moves: 100_000, objects: 1_000_000, bytes: 4 * GIB }

export class Budget {
  readonly #file: string
  readonly #most: Amounts
  #spent: Amounts

  /** `file` is pen's own, beside the sandbox's git directory. */
  constructor(file: string, most = MOST) {
    this.#file = file
    this.#most = most
    this.#spent = existsSync(file)
      ? { ...NOTHING, ...(JSON.parse(readFileSync(file, 'utf8')) as Partial<Amounts>) }
      : NOTHING
  }

  get refsLeft(): number {
    return Math.max(0, this.#most.refs - this.#spent.refs)
  }

  /** Call it before the host's repository gets them. Returns why they must stay in the sandbox. */
  spend(some: Partial<Amounts>): string | undefined {
    const { refs, moves, objects, bytes } = { ...NOTHING, ...some }
    if (refs + moves + objects + bytes === 0) return undefined
    const { refs: r, moves: m, objects: o, bytes: b } = this.#spent
    const spent: Amounts = { refs: r + refs, moves: m + moves, objects: o + objects, bytes: b + bytes }
    const { refs: mostRefs, moves: mostMoves, objects: mostObjects, bytes: mostBytes } = this.#most
    if (spent.refs > mostRefs) return `one run may bring ${mostRefs} refs, and this would be more`
    if (spent.moves > mostMoves) return `one run may move refs ${mostMoves} times, and this would be more`
    if (spent.objects > mostObjects) return `one run may bring ${mostObjects} objects, and this would be more`
    if (spent.bytes > mostBytes)
      return `one run may bring ${showBytes(mostBytes as Bytes)}, and this would be more`
    this.#spent = spent
    writeFileAtomically(this.#file, JSON.stringify(spent))
    return undefined
  }

  static forget(file: string): void {
    rmSync(file, { force: true })
  }
}
