/** Suggests a flag for an unknown one: a typing mistake, or the name that another tool uses. */
import { nearest } from '../../base/nearest.ts'
import type { FlagSpecs } from './flag-spec.ts'

/** Flags of other tools, with what the user types in pen. */
const ALIASES: Readonly<Record<string, string>> = {
  timeout: '--wall',
  'max-time': '--wall',
  'time-limit': '--wall',
  memory: '--limit memory=2GiB',
  mem: '--limit memory=2GiB',
  cpu: '--limit cpus=2',
  cpus: '--limit cpus=2',
  pids: '--limit pids=4096',
  'pids-limit': '--limit pids=4096',
  'no-network': '--offline',
  'no-net': '--offline',
  network: '--allow',
  net: '--allow',
  'allow-net': '--allow',
  'allow-host': '--allow',
  'allow-read': '--read',
  'allow-write': '--write',
  'add-dir': '--write',
  volume: '--write',
  mount: '--write',
  environment: '--env',
  'dry-run': '--dry-run-policy',
  publish: 'pen forward',
  port: 'pen forward',
  force: '--yes',
  background: '--detach',
  d: '--detach',
  daemon: '--detach',
  tail: '--follow',
  f: '--follow',
  y: '--yes',
  e: '--env',
  v: '--write',
  p: 'pen forward',
}

/** Flags that replace a verb. */
const GLOBAL: Readonly<Record<string, string>> = { help: '--help', version: 'pen --version' }

export function meantFlag(name: string, flags: FlagSpecs): string | undefined {
  if (Object.hasOwn(flags, name)) return `--${name}`
  const alias = Object.hasOwn(ALIASES, name) ? ALIASES[name] : undefined
  const isThere = alias !== undefined && (!alias.startsWith('--') || Object.hasOwn(flags, flagOf(alias)))
  if (isThere) return alias
  // Every letter is close to every other letter.
  if (name.length < 2) return undefined
  const near = nearest(name, [...Object.keys(flags), ...Object.keys(GLOBAL)])
  return near === undefined ? undefined : (GLOBAL[near] ?? `--${near}`)
}

const flagOf = (words: string): string => words.slice(2).split(' ', 1)[0] ?? ''

/** For an unknown flag before the verb. */
export function meantGlobalFlag(word: string): string | undefined {
  const near = nearest(word.replace(/^-+/, ''), Object.keys(GLOBAL))
  return near === undefined ? undefined : `pen --${near}`
}
