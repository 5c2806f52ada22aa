/**
 * The policy of the system call filter, as data. A call that stands in no rule is answered ENOSYS, as on a kernel
 * that does not have it: libraries fall back, and what a future kernel adds is closed until somebody has read it.
 */
import { ALLOWED } from './allowed.ts'
import { BY_ARGUMENT, EXEC_LISTED } from './by-argument.ts'
import { REFUSED } from './refused.ts'

/** The filter's answers; all but two are an errno, chosen so that programs take their ordinary way around it. */
export type Answer =
  | 'allow'
  | 'kill'
  | 'EPERM'
  | 'ENOSYS'
  | 'ENOPROTOOPT'
  | 'EPROTONOSUPPORT'
  | 'EAFNOSUPPORT'

export interface Rule {
  /** Names of system calls, parted by white space. */
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
 * A question about one argument register. The kernel cuts `int` arguments down to 32 bits, so `has` and `is` look at
 * the low half alone: dirt above it must not change the verdict. `only` also wants the high half to be zero.
 */
export type Test =
  | { readonly arg: Arg; readonly has: number }
  | { readonly arg: Arg; readonly is: readonly number[]; readonly mask?: number }
  | { readonly arg: Arg; readonly only: number }

export type Arg = 0 | 1 | 2 | 3 | 4 | 5

export interface FilterOptions {
  /** `tools.exec` of the policy: with `listed`, no program may come from anonymous memory either. */
  readonly exec: 'any' | 'listed'
}

/** Later rules replace earlier ones for the calls that they name. */
export const rulesFor = (options: FilterOptions): readonly Rule[] => [
  ...ALLOWED,
  ...REFUSED,
  ...BY_ARGUMENT,
  ...(options.exec === 'listed' ? EXEC_LISTED : []),
]
