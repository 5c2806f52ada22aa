/**
 * Reads the values of secrets from their sources, once per start. A source that fails stops the start: an empty value
 * would look like a refusal of the server. Messages name the secret and its source, never a value.
 */
import { existsSync } from 'node:fs'
import { PenError } from '../../base/error.ts'
import { findTool } from '../../base/find-tool.ts'
import { printable } from '../../base/printable.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { capture } from '../../base/spawn.ts'
import type { SecretValue } from '../../gateway/secrets/vault.ts'
import { printSource, type Secret, variablesOf } from '../../policy/network/secret.ts'
import { placeholderFor, type Random } from './placeholder.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Where sources are read. */
export interface SourceWorld {
  readonly env: Environment
  /** Whether a sandbox could have written this program. Directories of the project are often in PATH. */
  readonly isReplaceable: (program: string) => boolean
}

const MAX_BYTES = 8192
/** Password managers may ask the user to unlock. */
const COMMAND_MS = 30_000
/** Visible ASCII: a value cannot end a header field. */
const VALUE = /^[\x21-\x7e]{8,4096}$/

/** `variable` is the one inside that holds the placeholder. */
export type NamedValue = SecretValue & { readonly variable: string }

/** `randomFor` gives the random bytes for a text. */
export async function secretValues(
  secrets: readonly Secret[],
  world: SourceWorld,
  randomFor: (text: string) => Random,
): Promise<NamedValue[]> {
  const all = await Promise.all(
    secrets.map(async secret =>
      (await readSecret(secret, world)).map(({ variable, value }) => {
        const placeholder = placeholderFor(value, randomFor(`${variable} ${value}`))
        if (placeholder === undefined)
          throw failed(secret, 'has too few letters and digits', 'use a longer secret')
        return { name: secret.name, variable, value, placeholder }
      }),
    ),
  )
  return all.flat()
}

/** The value, with the variable inside for its placeholder. AWS keys have two or three. */
export async function readSecret(
  secret: Secret,
  world: SourceWorld,
): Promise<readonly { readonly variable: string; readonly value: string }[]> {
  const variables = variablesOf(secret, secret.name)
  const values = secret.sign === undefined ? [await fromSource(secret, world)] : await awsKeys(secret, world)
  return values.map((value, i) => ({ variable: variables[i] ?? '', value: checked(secret, value) }))
}

/** Key id, key, and the token of temporary keys. */
async function awsKeys(secret: Secret, world: SourceWorld): Promise<string[]> {
  const { from } = secret
  const { env } = world
  if (from.kind === 'env') {
    const [id = '', key = '', token = ''] = variablesOf(secret, from.variable)
    for (const name of [id, key])
      if (env[name] === undefined) throw failed(secret, `needs ${name}, which is not set`, `export ${name}=…`)
    return [env[id] ?? '', env[key] ?? '', ...(env[token] ? [env[token]] : [])]
  }
  const said = jsonIn(await fromSource(secret, world))
  const parts = ['AccessKeyId', 'SecretAccessKey', 'SessionToken'].map(name => said?.[name])
  if (typeof parts[0] !== 'string' || typeof parts[1] !== 'string')
    throw failed(secret, 'gave no AccessKeyId and SecretAccessKey as JSON', EXPORT)
  return parts.filter(part => typeof part === 'string')
}

const EXPORT = 'use what this prints: aws configure export-credentials'

function jsonIn(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined
  }
}

function checked(secret: Secret, text: string): string {
  const value = text.replace(/\r?\n$/, '')
  if (VALUE.test(value)) return value
  const why =
    value === ''
      ? 'is empty'
      : value.length < 8
        ? 'has less than 8 characters'
        : 'is not one line of visible characters'
  throw failed(secret, why, `check it: pen secret test ${secret.name}`)
}

async function fromSource(secret: Secret, world: SourceWorld): Promise<string> {
  const { from } = secret
  const { env } = world
  switch (from.kind) {
    case 'oauth':
      throw failed(secret, 'has no value before a program inside signs in', 'sign in inside')
    case 'env': {
      const value = env[from.variable]
      if (value === undefined) throw failed(secret, 'is not set', `export ${from.variable}=…`)
      return value
    }
    case 'file': {
      const bytes = readRegularFile(from.path, { maxBytes: MAX_BYTES, owner: 'self-or-root' })
      if (bytes === undefined) throw failed(secret, 'does not exist', `write the secret into ${from.path}`)
      return bytes.toString('latin1')
    }
    case 'command':
      return await output(secret, programOf(secret, from.argv, world), env)
    case 'keyring': {
      const tool = findTool('secret-tool')
      if (tool === undefined) throw failed(secret, 'needs secret-tool', 'install libsecret-tools')
      return await output(secret, [tool, 'lookup', ...[...from.attributes].flat()], env)
    }
  }
}

/** The user's own program, found as the user's shell would, but none that a sandbox could have written. */
function programOf(
  secret: Secret,
  [name = '', ...rest]: readonly string[],
  { env, isReplaceable }: SourceWorld,
): string[] {
  const paths = name.includes('/')
    ? [name]
    : (env['PATH'] ?? '')
        .split(':')
        .filter(directory => directory.startsWith('/'))
        .map(directory => `${directory}/${name}`)
        .filter(path => existsSync(path))
  const found = paths.find(path => !isReplaceable(path))
  if (found === undefined && paths.length > 0)
    throw failed(secret, 'is a program that the sandbox can write', 'use one outside the project')
  return [found ?? name, ...rest]
}

async function output(secret: Secret, argv: readonly string[], env: Environment): Promise<string> {
  const defined = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined))
  const { code, stdout } = await capture(argv, {
    timeoutMs: COMMAND_MS,
    maxOutput: MAX_BYTES,
    cwd: '/',
    env: defined as Record<string, string>,
  }).catch((error: unknown) => {
    throw failed(secret, 'could not be run', 'check that it is installed', error)
  })
  if (code !== 0) throw failed(secret, `failed with exit code ${code}`, 'run the command to see why')
  return stdout
}

const failed = (secret: Secret, why: string, hint: string, cause?: unknown): PenError =>
  new PenError('SECRET', {
    what: printable(`the secret ${secret.name}: ${printSource(secret.from)} ${why}`, 512),
    hint: printable(hint, 512),
    ...(cause !== undefined && { cause }),
  })
