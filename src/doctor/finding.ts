/** A check of the doctor: its input and its result. */
import { existsSync, readFileSync } from 'node:fs'
import { errnoOf, PenError } from '../base/error.ts'
import { capture } from '../base/spawn.ts'
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

/** `fails`: `pen run` does not work. `weak`: it works with reduced protection. */
export type Status = 'ok' | 'weak' | 'fails'

export interface Finding {
  /** Stable, for programs: `user-namespaces`, `tool-git`. */
  readonly id: string
  readonly status: Status
  /** What was checked, and the result. Can contain hostile text: the verb escapes it. */
  readonly what: string
  readonly why?: string | undefined
  /** The fix for this distribution. */
  readonly fix?: string | undefined
  /** The fix as words that `pen doctor --fix` can run, when the user agrees. */
  readonly does?: readonly string[] | undefined
}

/** A finding with the id of its check, unless it has its own. */
export type Result = Omit<Finding, 'id'> & Partial<Pick<Finding, 'id'>>

export type Results = Result | readonly Result[]

export interface Check {
  readonly id: string
  /** For progress lines. */
  readonly name: string
  readonly run: (machine: Machine) => Results | Promise<Results>
}

export const ok = (what: string, why?: string): Result => ({ status: 'ok', what, why })

export const weak = (what: string, why?: string, fix?: string): Result => ({ status: 'weak', what, why, fix })

export const fails = (what: string, why?: string, fix?: string): Result => ({
  status: 'fails',
  what,
  why,
  fix,
})

/** The last line of a tool's output, where most tools print the reason. */
export const lastLine = (text: string): string => text.trim().split('\n').at(-1)?.trim() ?? ''

/** Runs a program of the host. Undefined if it succeeds, else the reason. */
export async function failureOf(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  const { code, stderr } = await capture(argv, { env, timeoutMs: 8000, cwd: '/' })
  return code === 0 ? undefined : lastLine(stderr) || `exit ${code}`
}

/** The reason of a failure in one line. */
export function messageOf(error: unknown): string {
  if (error instanceof PenError) return error.message
  const text = error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error)
  return text || errnoOf(error) || 'unknown error'
}

export const hintOf = (error: unknown): string | undefined =>
  error instanceof PenError ? error.hint : undefined

/** Empty if the file cannot be read. */
export function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return ''
  }
}

/** Container engines create these files. */
export const isInContainer = (): boolean => existsSync('/.dockerenv') || existsSync('/run/.containerenv')
