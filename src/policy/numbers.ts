/** The settings that are numbers. More of any of them lets a sandbox do more. */
import { showBytes, showMillis } from '../base/quantity.ts'
import type { Limits, Policy } from './policy.ts'

const NUMBERS = {
  'network.hold': showMillis,
  'network.idle': showMillis,
  'exec.timeout': showMillis,
  'exec.ceiling': showMillis,
  'exec.maxOutput': showBytes,
  'limits.cpus': String,
  'limits.memory': showBytes,
  'limits.pids': String,
  'limits.wall': showMillis,
  'limits.disk': showBytes,
  'limits.output': showBytes,
  'limits.files': String,
} as const

export type NumberKey = keyof typeof NUMBERS

export const NUMBER_KEYS = Object.keys(NUMBERS) as NumberKey[]

export const isNumberKey = (key: string): key is NumberKey => Object.hasOwn(NUMBERS, key)

export const showNumber = (key: NumberKey, value: number): string =>
  (NUMBERS[key] as (value: number) => string)(value)

export function numberOf(policy: Policy, key: NumberKey): number {
  const [section, name] = key.split('.') as ['limits', keyof Limits]
  return policy[section][name]
}
