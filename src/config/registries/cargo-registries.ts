import { PenError } from '../../base/error.ts'
import { join } from '../../base/posix-path.ts'
import type { GroupContext } from '../groups.ts'
import { readIniFile } from './ini-file.ts'
import type { Mirror } from './mirror.ts'

const NAMES_REGISTRY = /^(?:source\..+\.registry|registries\..+\.index)$/

/**
 * The registries in cargo's own config.toml. cargo does not print its default. Its cache proves nothing, because people mount
 * it writable into sandboxes.
 */
export function cargoRegistries(context: GroupContext): Mirror[] {
  const files = ['config.toml', 'config'].map(name => join(context.home, '.cargo', name))
  const mirrors = files
    .flatMap(file => readIniFile(file, context.writable))
    .filter(({ section, key }) => NAMES_REGISTRY.test(section === '' ? key : `${section}.${key}`))
    .map(({ value, at }) => ({ url: value, at }))
  if (mirrors.length > 0) return mirrors
  throw new PenError('GROUP', {
    what: 'the group "crates" follows cargo, and ~/.cargo/config.toml names no registry',
    at: 'network.groups',
    hint: 'replace the source there ([source.crates-io] replace-with, [source.NAME] registry), or allow index and download host with pen allow',
  })
}
