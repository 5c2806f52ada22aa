/** The files of the user's live config, and whether they changed. No sandbox can reach them. */
import { lstatSync } from 'node:fs'
import { errnoText } from '../base/error.ts'
import { grantFiles } from '../config/grants/grant-files.ts'

const FILES = ['config.json', 'http-allowlist.txt', 'network-allowlist.txt']

/**
 * The state of the files now, to compare with later. Take it before the files are read: an edit in between is then noticed at the next
 * look.
 */
export const liveState = (stateDir: string): string =>
  [...FILES.map(name => lookOf(`${stateDir}/${name}`)), ...grantFiles(stateDir)].join('\n')

/** `-` for an absent file. A file that cannot be read is reported by the reader, not here. */
export function lookOf(path: string): string {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? '-' : `${stat.ino} ${stat.mode} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`
  } catch (error) {
    return errnoText(error)
  }
}
