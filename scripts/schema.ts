/**
 * npm run generate: writes the JSON schema for editors and the reference page from `src/policy/schema.ts`.
 * `test/repo/generated.test.ts` fails while they are out of date.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { toJsonSchema } from '@valibot/to-json-schema'
import { AVAILABLE_BACKENDS, AVAILABLE_ISOLATIONS } from '../src/backend/probe.ts'
import { type Bytes, type Millis, showBytes, showMillis } from '../src/base/quantity.ts'
import { showDeny } from '../src/policy/files/decide-file.ts'
import type { HostPath, PathWorld } from '../src/policy/files/path.ts'
import { profileLayer } from '../src/policy/profile.ts'
import { configSchema } from '../src/policy/schema.ts'
import type { FileDenyRule, List, Mount, PathGrant, SettingKey } from '../src/policy/settings.ts'
import { PROFILE_NAMES } from '../src/policy/settings.ts'
import type { Setting } from '../src/policy/source.ts'

interface JsonSchema {
  readonly description?: string
  readonly type?: string
  readonly enum?: readonly unknown[]
  readonly const?: unknown
  readonly properties?: Readonly<Record<string, JsonSchema>>
  readonly required?: readonly string[]
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
    'Made by `npm run generate` from `src/policy/schema.ts`, which also validates configs. [policy.md](../policy.md) says how',
    'layers merge. Point `"$schema"` at [config.schema.json](config.schema.json), and an editor completes and checks keys.',
    '',
    'Strict JSON: no comments, no unknown keys, at most 64 KiB. An absent key says nothing; an empty list clears what earlier',
    'layers said. `agent-permissions.json` has the same shape, and only restricts.',
    '',
    '| key | type | meaning | strict | coding | dev |',
    '| --- | --- | --- | --- | --- | --- |',
    ...rows(schema, ''),
    '',
    '`–` means that the profile does not set the key, so absence denies. `.` is the workspace.',
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

/**
 * The type of a policy for programs. The library ships without dependencies, so it cannot use the schema's own
 * type.
 */
function policyTypeText(): string {
  return formatted([
    '/**',
    ' * A policy as a program writes it: the shape of `config.json`. docs/policy.md explains each key.',
    ' * Made by `npm run generate` from `src/policy/schema.ts`.',
    ' */',
    '',
    `export interface PolicyDocument ${typeText({ ...schema, properties: available(schema) }, '')}`,
    '',
    "export type BackendName = NonNullable<PolicyDocument['backend']>",
    '',
  ])
}

/** Formatted as the other sources, for the linter. */
function formatted(lines: readonly string[]): string {
  const biome = join(import.meta.dir, '../node_modules/.bin/biome')
  const made = Bun.spawnSync([biome, 'format', '--stdin-file-path=src/library/policy-document.ts'], {
    cwd: join(import.meta.dir, '..'),
    stdin: Buffer.from(lines.join('\n')),
  })
  return made.stdout.toString()
}

/** Without keys that the parser accepts but this version of pen does not have. `$schema` is for editors. */
function available({ properties = {} }: JsonSchema): Record<string, JsonSchema> {
  const { $schema: _, ...rest } = properties
  const only = (value: JsonSchema | undefined, words: readonly string[]): JsonSchema => ({
    ...value,
    enum: (value?.enum ?? []).filter(word => words.includes(String(word))),
  })
  return {
    ...rest,
    isolation: only(rest['isolation'], AVAILABLE_ISOLATIONS),
    backend: only(rest['backend'], AVAILABLE_BACKENDS),
  }
}

function typeText(value: JsonSchema, indent: string): string {
  if (value.const !== undefined) return literal(value.const)
  if (value.enum !== undefined) return value.enum.map(literal).join(' | ')
  if (value.anyOf !== undefined) return value.anyOf.map(one => typeText(one, indent)).join(' | ')
  if (value.type === 'array') {
    const item = typeText(value.items ?? {}, indent)
    return `readonly ${/[|{]/.test(item) ? `(${item})` : item}[]`
  }
  if (value.properties !== undefined) {
    const inner = `${indent}  `
    const lines = Object.entries(value.properties).flatMap(([name, one]) => [
      ...(one.description === undefined ? [] : [`${inner}/** ${one.description}. */`]),
      value.required?.includes(name)
        ? `${inner}readonly ${name}: ${typeText(one, inner)}`
        : `${inner}readonly ${name}?: ${typeText(one, inner)} | undefined`,
    ])
    return `{\n${lines.join('\n')}\n${indent}}`
  }
  if (typeof value.additionalProperties === 'object')
    return `{ readonly [name: string]: ${typeText(value.additionalProperties, indent)} }`
  return value.type ?? 'unknown'
}

const literal = (value: unknown): string => (typeof value === 'string' ? `'${value}'` : String(value))

/** Each generated file, by path from the root, with its expected content. */
export const GENERATED: Readonly<Record<string, () => string>> = {
  'docs/reference/config.schema.json': schemaText,
  'docs/reference/config.md': referenceText,
  'src/library/policy-document.ts': policyTypeText,
}

if (import.meta.main)
  for (const [path, make] of Object.entries(GENERATED))
    writeFileSync(join(import.meta.dir, '..', path), make())
