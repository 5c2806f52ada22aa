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
import { printSource, type Secret } from '../../policy/network/secret.ts'
import { placeholderFor, type Random } from './placeholder.ts'

type Environment = Readonly<Record<string, string | undefined>>

const MAX_BYTES = 8192
/** Password managers may ask the user to unlock. */
const COMMAND_MS = 30_000
/** Visible ASCII: a value cannot end a header field. */
const VALUE = /^[\x21-\x7e]{8,4096}$/

/** `randomFor` gives the random bytes for a text. */
export const secretValues = (
  secrets: readonly Secret[],
  env: Environment,
  randomFor: (text: string) => Random,
): Promise<SecretValue[]> =>
  Promise.all(
    secrets.map(async secret => {
      const value = await readSecret(secret, env)
      const placeholder = placeholderFor(value, randomFor(`${secret.name} ${value}`))
      if (placeholder === undefined)
        throw failed(secret, 'has too few letters and digits', 'use a longer secret')
      return { name: secret.name, value, placeholder }
    }),
  )

export async function readSecret(secret: Secret, env: Environment): Promise<string> {
  const value = (await fromSource(secret, env)).replace(/\r?\n$/, '')
  if (VALUE.test(value)) return value
  const why =
    value === ''
      ? 'is empty'
      : value.length < 8
        ? 'has less than 8 characters'
        : 'is not one line of visible characters'
  throw failed(secret, why, `check it: pen secret test ${secret.name}`)
}

async function fromSource(secret: Secret, env: Environment): Promise<string> {
  const { from } = secret
  switch (from.kind) {
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
      return await output(secret, programOf(from.argv, env), env)
    case 'keyring': {
      const tool = findTool('secret-tool')
      if (tool === undefined) throw failed(secret, 'needs secret-tool', 'install libsecret-tools')
      return await output(secret, [tool, 'lookup', ...[...from.attributes].flat()], env)
    }
  }
}

/** The user's own program, found as the user's shell would. */
function programOf([name = '', ...rest]: readonly string[], env: Environment): string[] {
  const found = name.includes('/')
    ? name
    : (env['PATH'] ?? '')
        .split(':')
        .filter(directory => directory.startsWith('/'))
        .map(directory => `${directory}/${name}`)
        .find(path => existsSync(path))
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
