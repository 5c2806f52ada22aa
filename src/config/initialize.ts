/** Makes a directory a project. An existing `.pen/` is never applied here: the user must review it first. */
import { lstatSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import type { GroupName } from '../policy/network/groups.ts'
import { parseLayer } from '../policy/parse.ts'
import { rewriteLiveConfig, sameBytes, whileLocked } from './edit.ts'
import { type JsonObject, type JsonValue, printJson, readJson } from './json/json.ts'
import { findLive } from './layers.ts'
import { confirmPathStays, DOCUMENTS, ownerOf, PenDirectory } from './pen-directory.ts'
import type { Project } from './project.ts'
import { publicSuffixTest } from './public-suffix.ts'

export interface Initialized {
  /** Whether `.pen/config.json` was written. */
  readonly wrote: boolean
  readonly live: 'written' | 'kept' | 'absent'
  readonly groups: Initial['groups']
  /** Whether the live config and the project's differ in any byte. */
  readonly differs: boolean
}

export async function initialize(project: Project, schema: string): Promise<Initialized> {
  const initial = initialConfig(project.world.workspace)
  const wrote = await whileLocked(project, () => writeProject(project, initial.text, schema))
  const before = findLive(project).live
  if (before === undefined && wrote) {
    let isNew = true
    await rewriteLiveConfig(project, now => {
      isNew = now === undefined
      return now ?? initial.text
    })
    if (isNew) return { wrote, live: 'written', groups: initial.groups, differs: false }
  }
  const live = findLive(project).live
  return {
    wrote,
    live: live === undefined ? 'absent' : 'kept',
    groups: [],
    differs: !sameBytes(live?.bytes, readProject(project)),
  }
}

/**
 * Writes a config into the project that is not in force: the user reads it and applies it. False when the project already
 * has any configuration.
 */
export async function propose(
  project: Project,
  schema: string,
  config: Readonly<Record<string, JsonValue>>,
): Promise<boolean> {
  const { world } = project
  const text = printJson({ ...initialConfig(world.workspace).config, ...config })
  const check = {
    name: '.pen/config.json',
    trust: 'user' as const,
    world,
    isPublicSuffix: await publicSuffixTest(['*']),
  }
  parseLayer(readJson(Buffer.from(text), '.pen/config.json'), check)
  return await whileLocked(project, () => writeProject(project, text, schema))
}

/** False when the project already has any configuration. */
function writeProject(project: Project, text: string, schema: string): boolean {
  using there = PenDirectory.open(project.world.workspace)
  if (there !== undefined && DOCUMENTS.some(name => there.read(name) !== undefined)) return false
  using directory = PenDirectory.openOrMake(project.world.workspace)
  directory.write('config.schema.json', schema)
  directory.write('config.json', text)
  directory.confirmStays()
  return true
}

function readProject(project: Project): Buffer | undefined {
  using directory = PenDirectory.open(project.world.workspace)
  return directory?.read('config.json')?.bytes
}

/** The config that `pen init` writes, with groups that the project's files suggest. */
interface Initial {
  readonly config: JsonObject
  readonly text: string
  /** The groups in the config, and the file that suggested each. */
  readonly groups: readonly { readonly name: GroupName; readonly because: string }[]
}

/**
 * A project file can suggest only these groups. Each means the package sources in the user's own settings. Groups with hosts
 * that accept a push are never suggested.
 */
const SUGGESTED_BY: Readonly<Record<string, GroupName>> = {
  'package.json': 'npm',
  'pyproject.toml': 'pypi',
  'requirements.txt': 'pypi',
  'setup.py': 'pypi',
  'setup.cfg': 'pypi',
  Pipfile: 'pypi',
  'Cargo.toml': 'crates',
  'go.mod': 'go',
}

function initialConfig(workspace: string): Initial {
  const found = new Map<GroupName, string>()
  for (const [file, name] of Object.entries(SUGGESTED_BY))
    if (!found.has(name) && lstatSync(`${workspace}/${file}`, { throwIfNoEntry: false })?.isFile() === true)
      found.set(name, file)
  const network = found.size === 0 ? {} : { network: { groups: [...found.keys()] } }
  const config = { $schema: './config.schema.json', version: 1, profile: 'coding', ...network }
  return {
    config,
    text: printJson(config),
    groups: [...found].map(([name, because]) => ({ name, because })),
  }
}

/** The project's own document, in which it can only restrict permissions. */
export const PERMISSIONS = 'agent-permissions.json'

/** Contains only denials, so it restricts even when the project's document may add grants. */
export const permissionsTemplate = (): string =>
  printJson({
    $schema: './.pen/config.schema.json',
    version: 1,
    files: { deny: ['secrets/', '*.pem', '*.key'], protect: [] },
    network: { deny: [] },
  })

/** For `pen init --permissions`. False when the name already exists. */
export function writePermissions(workspace: string): boolean {
  const path = `${workspace}/${PERMISSIONS}`
  const there = () => lstatSync(path, { throwIfNoEntry: false })
  const isThere = (): boolean => there() !== undefined
  if (isThere()) return false
  const options = { mode: 0o644, owner: ownerOf(workspace), unless: isThere }
  if (!writeFileAtomically(path, permissionsTemplate(), options)) return false
  confirmPathStays(path, there() ?? { dev: 0, ino: 0 })
  return true
}
