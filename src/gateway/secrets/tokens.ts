/** Tokens that the gateway keeps for programs inside. The supervisor stores them, so that the next run knows them. */
import type { SecretValue } from './vault.ts'

export interface Tokens {
  /** Those of all secrets, newest last. */
  all(): readonly SecretValue[]
  /** Also those that are no longer kept: a server may still repeat them. */
  seen(): readonly SecretValue[]
  /** The placeholder of a token, which is now the newest. Undefined when the token is too simple for one, or cannot be stored. */
  keep(name: string, token: string): string | undefined
}
