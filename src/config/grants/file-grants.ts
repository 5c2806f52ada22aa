/** `file-grants.json` beside the live config: file grants for running sandboxes. No sandbox sees it and no project writes it. */
import { removeLeftovers, writeFileAtomically } from '../../base/atomic-file.ts'
import { PenError } from '../../base/error.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import type { FileGrant } from '../../policy/files/decide-grant.ts'
import { type HostPath, normalize } from '../../policy/files/path.ts'
import {
  isObject,
  type JsonDocument,
  type JsonPath,
  type JsonValue,
  printJson,
  readJson,
} from '../json/json.ts'
import { withLock } from '../lock.ts'
import { makeStateDirectory, type Project } from '../project.ts'

const MAX_BYTES = 262_144
const MAX_GRANTS = 256
const KEYS = ['path', 'kind', 'write', 'execute', 'until', 'root']

export const fileGrantsFile = (stateDir: string): string => `${stateDir}/file-grants.json`

/** Throws if any byte is invalid: a partly read file could grant something unintended. */
export function readFileGrants(stateDir: string): readonly FileGrant[] {
  const file = fileGrantsFile(stateDir)
  const bytes = readRegularFile(file, { maxBytes: MAX_BYTES, owner: 'self-or-root' })
  return bytes === undefined ? [] : parseGrants(readJson(bytes, file, MAX_BYTES))
}

/** Edits under a lock. `edit` receives the unexpired grants, and its result replaces them. */
export async function editFileGrants(
  project: Project,
  edit: (grants: readonly FileGrant[]) => readonly FileGrant[],
  /** `discard` starts over when the file cannot be read. */
  damaged: 'refuse' | 'discard' = 'refuse',
): Promise<void> {
  const file = fileGrantsFile(project.stateDir)
  makeStateDirectory(project.stateDir)
  await withLock(file, () => {
    removeLeftovers(file)
    const present = damaged === 'refuse' ? readFileGrants(project.stateDir) : readIfValid(project.stateDir)
    const now = Date.now()
    const after = edit(present.filter(({ until }) => until === undefined || now < until))
    if (after.length > MAX_GRANTS)
      throw new PenError('USAGE', {
        what: `more than ${MAX_GRANTS} grants at once`,
        hint: 'pen revoke those that are no longer needed, or grant the directory above',
      })
    writeFileAtomically(file, printGrants(after))
  })
}

function readIfValid(stateDir: string): readonly FileGrant[] {
  try {
    return readFileGrants(stateDir)
  } catch (error) {
    if (error instanceof PenError) return []
    throw error
  }
}

const printGrants = (grants: readonly FileGrant[]): string =>
  printJson(
    {
      version: 1,
      grants: grants.map(({ path, kind, write, execute, until, root }) => ({
        path,
        kind,
        write,
        execute,
        until: until ?? null,
        root: `${root.dev}:${root.ino}`,
      })),
    },
    { maxBytes: MAX_BYTES },
  )

function parseGrants(document: JsonDocument): readonly FileGrant[] {
  const { value } = document
  const refuse = (what: string, path: JsonPath): never => {
    throw new PenError('CONFIG_VALUE', {
      what,
      at: document.placeOf(path),
      hint: 'start over: pen revoke --all',
    })
  }
  if (!isObject(value) || Object.keys(value).some(key => key !== 'version' && key !== 'grants'))
    return refuse('this is not a list of grants', [])
  if (value['version'] !== 1) return refuse('the grants are from another version of pen', ['version'])
  const { grants } = value
  if (!Array.isArray(grants) || grants.length > MAX_GRANTS) return refuse('this is not a list of grants', [])
  return grants.map((one: JsonValue, i) => parseGrant(one) ?? refuse('this is not a grant', ['grants', i]))
}

function parseGrant(value: JsonValue): FileGrant | undefined {
  if (!isObject(value) || Object.keys(value).length !== KEYS.length) return undefined
  const { path, kind, write, execute, until, root } = value
  if (typeof path !== 'string' || !path.startsWith('/') || path === '/' || normalize(path) !== path)
    return undefined
  if (kind !== 'file' && kind !== 'directory') return undefined
  if (typeof write !== 'boolean' || typeof execute !== 'boolean') return undefined
  if (until !== null && !(typeof until === 'number' && Number.isSafeInteger(until) && until > 0))
    return undefined
  const [, dev, ino] = (typeof root === 'string' && /^(\d{1,20}):(\d{1,20})$/.exec(root)) || []
  if (dev === undefined || ino === undefined) return undefined
  return {
    path: path as HostPath,
    kind,
    write,
    execute,
    until: until ?? undefined,
    root: { dev: BigInt(dev), ino: BigInt(ino) },
  }
}
