/** Chooses the backend that keeps what the policy asks for. Nothing weaker than what was named is ever taken. */
import { PenError } from '../base/error.ts'
import type { Policy } from '../policy/policy.ts'
import type { Backend } from './backend.ts'
import { processBackend } from './process/process.ts'

/** Every backend that exists; all but the usual one are loaded when they are needed. */
const BACKENDS = {
  process: async (): Promise<Backend> => processBackend,
} as const

const WANTED: Readonly<Record<Policy['isolation'], keyof typeof BACKENDS | undefined>> = {
  auto: 'process',
  process: 'process',
  soft: undefined,
  container: undefined,
  gvisor: undefined,
  vm: undefined,
}

/** For one command, or for a sandbox that stays. */
export type Purpose = 'run' | 'keep'

export async function chooseBackend(policy: Policy, _purpose: Purpose): Promise<Backend> {
  const name = policy.backend === 'any' ? WANTED[policy.isolation] : policy.backend
  const load =
    name === undefined ? undefined : (BACKENDS as Partial<Record<string, () => Promise<Backend>>>)[name]
  if (load === undefined)
    throw new PenError('BACKEND', {
      what:
        policy.backend === 'any'
          ? `isolation "${policy.isolation}" is not available in this version of pen`
          : `backend "${policy.backend}" is not available in this version of pen`,
      hint: `available: ${Object.keys(BACKENDS).join(', ')}; pen never takes a weaker one by itself`,
    })
  const backend = await load()
  if (policy.backend !== 'any' && policy.isolation !== 'auto' && WANTED[policy.isolation] !== policy.backend)
    throw new PenError('BACKEND', {
      what: `backend "${policy.backend}" does not give isolation "${policy.isolation}"`,
      hint: 'name one of the two, not both',
    })
  return backend
}
