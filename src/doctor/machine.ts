import { existsSync } from 'node:fs'
import type { Project } from '../config/project.ts'
import type { Distribution } from './distribution.ts'

/** The input of every check. */
export interface Machine {
  readonly distribution: Distribution
  /** Undefined if the current directory cannot be a project; `misplaced` is the error. */
  readonly project: Project | undefined
  readonly misplaced: unknown
  /** `~/.pen`, if it exists or not. */
  readonly state: string
  readonly home: string
  /** A temporary directory for the checks; undefined if none could be created. */
  readonly scratch: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
}

/** Container engines create these files. */
export const isInContainer = (): boolean => existsSync('/.dockerenv') || existsSync('/run/.containerenv')
