import { existsSync } from 'node:fs'
import type { Project } from '../config/project.ts'
import type { Distribution } from './distribution.ts'

/** What every check is told. */
export interface Machine {
  readonly distribution: Distribution
  /** Undefined where no project can be: then `misplaced` says why. */
  readonly project: Project | undefined
  readonly misplaced: unknown
  /** `~/.pen`, which need not be there yet. */
  readonly state: string
  readonly home: string
  /** A directory of this examination's own, removed at its end; undefined when none could be made. */
  readonly scratch: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
}

/** As the engines mark them. */
export const isInContainer = (): boolean => existsSync('/.dockerenv') || existsSync('/run/.containerenv')
