/**
 * The rules of the seccomp filter, as data. A call that is in no rule gets ENOSYS, as on a kernel without it. Libraries
 * then fall back, and a call of a future kernel is closed until it is reviewed.
 */
import { ALLOWED } from './allowed.ts'
import { BY_ARGUMENT, EXEC_LISTED } from './by-argument.ts'
import { REFUSED } from './refused.ts'

/** The filter's answers. All but two are an errno, chosen so that programs use their normal fallback. */
export type Answer =
  | 'allow'
  | 'kill'
  | 'EPERM'
  | 'ENOSYS'
  | 'ENOPROTOOPT'
  | 'EPROTONOSUPPORT'
  | 'EAFNOSUPPORT'

export interface Rule {
  /** Names of system calls, separated by white space. */
  readonly calls: string
  /** The answer when no case matches. */
  readonly answer: Answer
  readonly why: string
  /** The first case whose tests all hold decides. */
  readonly cases?: readonly Case[]
}

export interface Case {
  readonly when: readonly Test[]
  readonly answer: Answer
}

/**
 * A test of one argument register. The kernel truncates `int` arguments to 32 bits, so `has` and `is` look only at the
 * low half. A dirty high half must not change the verdict. `only` also requires the high half to be zero.
 */
export type Test =
  | { readonly arg: Arg; readonly has: number }
  | { readonly arg: Arg; readonly is: readonly number[]; readonly mask?: number }
  | { readonly arg: Arg; readonly only: number }

export type Arg = 0 | 1 | 2 | 3 | 4 | 5

export interface FilterOptions {
  /** `tools.exec` of the policy. With `listed`, anonymous memory may hold no program either. */
  readonly exec: 'any' | 'listed'
}

/** Later rules replace earlier ones for the calls that they name. */
export const rulesFor = (options: FilterOptions): readonly Rule[] => [
  ...ALLOWED,
  ...REFUSED,
  ...BY_ARGUMENT,
  ...(options.exec === 'listed' ? EXEC_LISTED : []),
]
