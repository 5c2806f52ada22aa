/**
 * npm run generate: the JSON schema for editors and the reference page, both from `src/policy/schema.ts`.
 * `test/repo/generated.test.ts` fails while they are older than their source.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toJsonSchema } from '@valibot/to-json-schema'
import { type Bytes, type Millis, showBytes, showMillis } from '../src/base/quantity.ts'
import { showDeny } from '../src/policy/decide-file.ts'
import type { HostPath, PathWorld } from '../src/policy/path.ts'
import { profileLayer } from '../src/policy/profile.ts'
import { configSchema } from '../src/policy/schema.ts'
import type { FileDenyRule, List, Mount, PathGrant, SettingKey } from '../src/policy/settings.ts'
import type { Setting } from '../src/policy/source.ts'
import { PROFILE_NAMES } from '../src/policy/vocabulary.ts'

interface JsonSchema {
  readonly description?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly additionalProperties?: JsonSchema | boolean
  readonly items?: JsonSchema
  readonly anyOf?: readonly JsonSchema[]
}

const schema = toJsonSchema(configSchema) as JsonSchema

const schemaText = (): string =>
  `${JSON.stringify({ ...schema, title: "pen's config.json and agent-permissions.json" }, undefined, 2)}\n`

const WORKSPACE = '/workspace' as HostPath
const world: PathWorld = {
  workspace: WORKSPACE,
  home: '/home' as HostPath,
  state: '/home/.pen' as HostPath,
  locate: path => ({ real: path, kind: 'directory' }),
}

function referenceText(): string {
  const out = [
    '# config.json',
    '',
    'Made by `npm run generate` from `src/policy/schema.ts`; the same source checks what you write. [policy.md](../policy.md) says how layers are merged.',
    'Point `"$schema"` at [config.schema.json](config.schema.json) and an editor completes and checks as you type.',
    '',
    'Strict JSON: no comments, no unknown keys, at most 64 KiB. An absent key says nothing; an empty list removes what earlier layers said.',
    '`agent-permissions.json` has the same shape, and only takes away.',
    '',
    '| key | type | meaning | strict | coding | dev |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows(schema, ''),
    '',
    '`–` means that the profile says nothing, so absence denies. `.` is the workspace.',
    '',
  ]
  return out.join('\n')
}

function rows(at: JsonSchema, prefix: string): string[] {
  return Object.entries(at.properties ?? {}).flatMap(([name, value]) => {
    const key = `${prefix}${name}`
    if (value.properties !== undefined) return rows(value, `${key}.`)
    const defaults = PROFILE_NAMES.map(profile => defaultOf(profile, key as SettingKey))
    const cells = [`\`${key}\``, typeOf(value), value.description ?? '', ...defaults]
    return [`| ${cells.map(cell => cell.replaceAll('|', '\\|')).join(' | ')} |`]
  })
}

function typeOf(value: JsonSchema): string {
  if (value.const !== undefined) return `\`${JSON.stringify(value.const)}\``
  if (value.enum !== undefined) return value.enum.map(word => `\`${JSON.stringify(word)}\``).join(', ')
  if (value.anyOf !== undefined) return value.anyOf.map(typeOf).join(' or ')
  if (value.type === 'array') return `list of ${typeOf(value.items ?? {})}`
  if (value.properties !== undefined)
    return `\`{ ${Object.keys(value.properties)
      .map(key => `"${key}"`)
      .join(', ')} }\``
  if (typeof value.additionalProperties === 'object') return `object of ${typeOf(value.additionalProperties)}`
  return value.type === 'string' ? 'text' : (value.type ?? '')
}

const SIZES = /memory|disk|output|maxOutput/
const TIMES = /wall|idle|timeout|ceiling/

function defaultOf(profile: (typeof PROFILE_NAMES)[number], key: SettingKey): string {
  const said: unknown = profileLayer(profile, world).settings[key]
  if (said === undefined) return '–'
  if (key === 'files.protect')
    return `[${(said as List<unknown>).items.length} places](../protected-paths.md)`
  const { items } = said as List<unknown>
  if (items !== undefined) return items.map(({ rule }) => `\`${showRule(key, rule)}\``).join(', ')
  const { value } = said as Setting<unknown>
  if (SIZES.test(key)) return showBytes(value as Bytes)
  if (TIMES.test(key)) return showMillis(value as Millis)
  return `\`${JSON.stringify(value)}\``
}

function showRule(key: SettingKey, rule: unknown): string {
  if (key === 'files.deny') return showDeny(rule as FileDenyRule)
  if (key === 'mounts') {
    const mount = rule as Mount
    return mount.kind === 'volume' ? `volume ${mount.volume} at ${mount.at}` : mount.host
  }
  const { path } = rule as PathGrant
  return path === WORKSPACE ? '.' : path.replace(`${WORKSPACE}/`, './')
}

/** Each file, from the root, and what it should hold. */
export const GENERATED: Readonly<Record<string, () => string>> = {
  'docs/reference/config.schema.json': schemaText,
  'docs/reference/config.md': referenceText,
}

if (import.meta.main)
  for (const [path, make] of Object.entries(GENERATED))
    writeFileSync(join(import.meta.dir, '..', path), make())
