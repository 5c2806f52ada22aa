/**
 * Tokens of OAuth sign-ins, in the project's state: one file each, 0600, so that two sandboxes of a project do not
 * overwrite each other. An agent renews its tokens, so only the newest are kept.
 */
import { mkdirSync, readdirSync, rmSync, statSync } from 'node:fs'
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { tokenDirectory } from '../../config/secrets.ts'
import type { Tokens } from '../../gateway/secrets/tokens.ts'
import type { SecretValue } from '../../gateway/secrets/vault.ts'
import { printSource, type Secret } from '../../policy/network/secret.ts'
import { placeholderFor, type Random } from './placeholder.ts'

const MAX_BYTES = 32_768
/** Of one secret. */
const MOST = 16
/**
 * Of one gateway. A token that is no longer kept is still valid, and a server may repeat it. So a program must not be able to
 * push it out.
 */
const MOST_SEEN = 256
const FORGET_MS = 24 * 3_600_000

export class TokenStore implements Tokens {
  readonly #stateDir: string
  /** The sign-in servers of each secret, by its name. Tokens of other servers are not its own: the user may edit it. */
  readonly #servers: ReadonlyMap<string, string>
  readonly #randomFor: (text: string) => Random
  readonly #read = new Map<string, { readonly state: string; readonly tokens: readonly SecretValue[] }>()
  /** By secret and token, oldest first. */
  readonly #seen = new Map<string, { readonly token: SecretValue; readonly since: number }>()

  constructor(
    stateDir: string,
    secrets: readonly Pick<Secret, 'name' | 'from'>[],
    randomFor: (text: string) => Random,
  ) {
    this.#stateDir = stateDir
    this.#servers = new Map(secrets.map(({ name, from }) => [name, printSource(from)]))
    this.#randomFor = randomFor
  }

  /** Another sandbox of the project may have renewed a token. */
  all(): readonly SecretValue[] {
    return [...this.#servers].flatMap(([name, servers]) => {
      const directory = tokenDirectory(this.#stateDir, name)
      const stat = statSync(directory, { throwIfNoEntry: false, bigint: true })
      if (stat === undefined) return []
      const state = `${stat.ino} ${stat.mtimeNs}`
      const known = this.#read.get(name)
      if (known?.state === state) return known.tokens
      const tokens = readTokens(directory, name, servers).map(token => this.#note(token))
      this.#read.set(name, { state, tokens })
      return tokens
    })
  }

  seen(): readonly SecretValue[] {
    this.all()
    return [...this.#seen.values()].map(({ token }) => token)
  }

  keep(name: string, token: string): string | undefined {
    const servers = this.#servers.get(name)
    if (servers === undefined) return undefined
    const directory = tokenDirectory(this.#stateDir, name)
    const known = this.all().find(one => one.name === name && one.value === token)
    if (!this.#hasRoom(keyOf({ name, value: token }))) return undefined
    const placeholder = known?.placeholder ?? placeholderFor(token, this.#randomFor(`${name} ${token}`))
    if (placeholder === undefined) return undefined
    this.#note({ name, value: token, placeholder })
    try {
      // A refresh token may stay the same for months, while access tokens come and go.
      mkdirSync(directory, { recursive: true, mode: 0o700 })
      const text = JSON.stringify({ value: token, placeholder, servers })
      writeFileAtomically(`${directory}/${fileOf(placeholder)}`, text, { mode: 0o600 })
      for (const { file } of filesIn(directory).slice(0, -MOST)) rmSync(file, { force: true })
    } catch {
      return undefined
    }
    return placeholder
  }

  /** The same object for the same token. */
  #note(token: SecretValue): SecretValue {
    const known = this.#seen.get(keyOf(token)) ?? { token, since: Date.now() }
    this.#seen.set(keyOf(token), known)
    return known.token
  }

  #hasRoom(key: string): boolean {
    const [oldest] = this.#seen
    if (this.#seen.has(key) || this.#seen.size < MOST_SEEN || oldest === undefined) return true
    const [first, { since }] = oldest
    return Date.now() - since > FORGET_MS && this.#seen.delete(first)
  }
}

const keyOf = ({ name, value }: Pick<SecretValue, 'name' | 'value'>): string => `${name} ${value}`

const fileOf = (placeholder: string): string =>
  new Bun.CryptoHasher('sha256').update(placeholder).digest('hex').slice(0, 32)

function readTokens(directory: string, name: string, servers: string): SecretValue[] {
  return filesIn(directory).flatMap(({ file }) => {
    const { value, placeholder, servers: from } = parse(textOf(file))
    if (from !== servers || typeof value !== 'string' || typeof placeholder !== 'string') return []
    return [{ name, value, placeholder }]
  })
}

/** Oldest first. Files that are being written are left out. */
const filesIn = (directory: string): { readonly file: string; readonly at: number }[] =>
  readdirSync(directory)
    .filter(file => /^[0-9a-f]{32}$/.test(file))
    .map(file => ({
      file: `${directory}/${file}`,
      at: statSync(`${directory}/${file}`, { throwIfNoEntry: false })?.mtimeMs ?? 0,
    }))
    .sort((a, b) => a.at - b.at)

/** Only the user can put another kind of file there. A gateway goes on without it. */
function textOf(file: string): string {
  try {
    return readRegularFile(file, { maxBytes: MAX_BYTES, owner: 'self-or-root' })?.toString() ?? ''
  } catch {
    return ''
  }
}

function parse(text: string): Readonly<Record<string, unknown>> {
  try {
    return JSON.parse(text) as Record<string, unknown>
  } catch {
    return {}
  }
}
