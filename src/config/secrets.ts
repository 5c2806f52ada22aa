/** Secrets in the live config, and values that the user gave pen to store: 0600, in the project's state. */
import { existsSync, rmSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { editLiveConfig } from './edit.ts'
import type { JsonObject, JsonValue } from './json/json.ts'
import { makeStateDirectory, type Project } from './project.ts'

/** Where tokens of sign-ins are. */
export const tokenDirectory = (stateDir: string, name: string): string => `${stateDir}/tokens/${name}`

const storedAt = ({ shared }: Project, name: string): string => `${shared.stateDir}/secrets/${name}`

/** Returns the file. */
export function storeValue(project: Project, name: string, value: string): string {
  if (value === '') throw new PenError('SECRET', { what: 'the value is empty: nothing was stored' })
  const file = storedAt(project, name)
  makeStateDirectory(`${project.shared.stateDir}/secrets`)
  writeFileAtomically(file, `${value}\n`)
  return file
}

/** Replaces a secret of the same name. */
export const addSecret = (
  project: Project,
  entry: { readonly name: string } & Readonly<Record<string, unknown>>,
): Promise<boolean> =>
  editLiveConfig(project, config => ({
    ...config,
    secrets: [...listOf(config).filter(other => nameOf(other) !== entry.name), entry as unknown as JsonValue],
  }))

/** Returns the names that were there. */
export async function removeSecrets(project: Project, names: readonly string[]): Promise<string[]> {
  const removed: string[] = []
  await editLiveConfig(project, config => {
    const { secrets: _, ...others } = config
    const list = listOf(config)
    const kept = list.filter(entry => !names.includes(nameOf(entry)))
    if (kept.length === list.length) return config
    removed.push(...list.map(nameOf).filter(name => names.includes(name)))
    return kept.length === 0 ? others : { ...config, secrets: kept }
  })
  for (const name of removed) rmSync(storedAt(project, name), { force: true })
  // Tokens of a sign-in, also of a preset's, which is in no config.
  const signedIn = names.filter(
    name => /^\w+$/.test(name) && existsSync(tokenDirectory(project.shared.stateDir, name)),
  )
  for (const name of signedIn)
    rmSync(tokenDirectory(project.shared.stateDir, name), { recursive: true, force: true })
  return [...new Set([...removed, ...signedIn])]
}

const listOf = (config: JsonObject): readonly JsonValue[] =>
  (config['secrets'] as readonly JsonValue[] | undefined) ?? []

const nameOf = (entry: JsonValue): string => String((entry as JsonObject)['name'])
