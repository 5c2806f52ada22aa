/** Copies the live config into the project's `.pen/`, where people can commit it. */
import { PenError } from '../base/error.ts'
import { whileLocked } from './edit.ts'
import { readJson } from './json/json.ts'
import { findLive } from './layers.ts'
import { PenDirectory } from './pen-directory.ts'
import type { Project } from './project.ts'
import { foldedBytes, withoutSecrets } from './proposal.ts'

interface Backup {
  readonly file: string
  readonly changed: boolean
  /** Removed text lists of the project. Their entries that are in force are now in the document. */
  readonly removed: readonly string[]
  /** Keys whose values may be secrets and are now in the project. */
  readonly values: readonly string[]
}

export async function backUp(
  project: Project,
  options: { readonly withPassword: boolean; readonly schema: string },
): Promise<Backup> {
  const { workspace } = project.world
  return await whileLocked(project, () => {
    const live = findLive(project)
    if (live.live === undefined && live.http === undefined && live.tcp === undefined)
      throw new PenError('CONFIG_FILE', {
        what: 'there is no live config to copy: this project has the defaults',
        at: project.shared.stateDir,
        hint: 'pen init writes a first one',
      })
    const bytes = withoutSecrets(foldedBytes(live))
    const { password, values } = secretsIn(readJson(bytes, 'live config').value)
    if (password && !options.withPassword)
      throw new PenError('CONFIG_VALUE', {
        what: 'network.upstreamProxy contains a user name or password, which every reader of the project would see',
        at: live.live?.file ?? project.shared.stateDir,
        hint: 'remove it from the address, or run: pen config backup --with-password',
      })
    using directory = PenDirectory.openOrMake(workspace)
    const changed = directory.peek('config.json')?.equals(bytes) !== true
    if (changed) directory.write('config.json', bytes)
    if (directory.peek('config.schema.json') === undefined)
      directory.write('config.schema.json', options.schema)
    const removed = (['http-allowlist.txt', 'network-allowlist.txt'] as const).filter(name =>
      directory.remove(name),
    )
    directory.confirmStays()
    return { file: `${directory.path}/config.json`, changed, removed, values }
  })
}

interface MayHoldSecrets {
  readonly env?: Readonly<Record<string, unknown>>
  readonly image?: { readonly args?: object }
  readonly network?: { readonly upstreamProxy?: unknown }
}

function secretsIn(value: unknown): { password: boolean; values: string[] } {
  const { env = {}, image, network } = value as MayHoldSecrets
  const proxy = network?.upstreamProxy
  const url = typeof proxy === 'string' && URL.canParse(proxy) ? new URL(proxy) : undefined
  return {
    password: url !== undefined && (url.username !== '' || url.password !== ''),
    values: [
      ...Object.entries(env)
        .filter(([, said]) => typeof said === 'string')
        .map(([name]) => `env.${name}`),
      ...Object.keys(image?.args ?? {}).map(name => `image.args.${name}`),
    ],
  }
}
