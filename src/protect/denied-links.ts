/**
 * Links at denied names while a sandbox runs. Nothing can be mounted on a link, and a link alone reveals nothing: what it leads to
 * is denied. So is what it led to before, because a sandbox may turn it at any time.
 */
import { PenError } from '../base/error.ts'
import { printable } from '../base/printable.ts'
import { locate } from '../config/locate.ts'
import { leadsThroughProc, linksOf } from '../survey/links.ts'
import { TOO_MANY } from './tree-watch.ts'

/** Links that are followed during a run. */
const MAX_LINKS = 10_000
/** Places to which one link may lead during a run. */
const MAX_TARGETS = 4

export interface Led {
  /** The other links on the way. One that changes is a reason for a survey. */
  readonly links: readonly string[]
  /** Undefined for a loop of links, which reveals nothing. */
  readonly real: string | undefined
  readonly isThere: boolean
  /** Where it led before. */
  readonly earlier: readonly string[]
  /** Why it cannot be covered. */
  readonly overflows: string | undefined
}

export class DeniedLinks {
  /** Each link, and where it led to in this run. */
  readonly #targets = new Map<string, Set<string>>()

  /** `textOf` is undefined for what is no link. */
  follow(link: string, textOf: (path: string) => string | undefined): Led {
    const chain = linksOf(link, textOf)
    const links = chain.filter(path => path !== link)
    const shown = printable(link, 200)
    const proc = leadsThroughProc(chain)
      ? `the link ${shown} leads through /proc, where nothing can be covered`
      : undefined
    try {
      const { real, kind } = locate(link)
      const reals = (this.#targets.get(link) ?? new Set()).add(real)
      this.#targets.set(link, reals)
      const turned =
        reals.size > MAX_TARGETS ? `the link ${shown} changed too often while the sandbox ran` : undefined
      return {
        links,
        real,
        isThere: kind !== 'absent' && kind !== 'unreachable',
        earlier: [...reals].filter(before => before !== real),
        overflows: proc ?? (this.#targets.size > MAX_LINKS ? TOO_MANY : turned),
      }
    } catch (error) {
      if (!(error instanceof PenError)) throw error
      return { links, real: undefined, isThere: false, earlier: [], overflows: proc }
    }
  }
}
