/** The files of the user's live config, and whether they changed. They lie outside every sandbox's reach. */
import { lstatSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { grantFiles } from '../config/grants/grant-files.ts'

const FILES = ['config.json', 'http-allowlist.txt', 'network-allowlist.txt']

/**
 * What the files look like now, as something to compare. To be asked for before they are read: an edit that comes
 * between the two is then seen the next time, and one that comes before is read.
 */
export const liveState = (stateDir: string): string =>
  [...FILES.map(name => lookOf(`${stateDir}/${name}`)), ...grantFiles(stateDir)].join('\n')

/** Whatever stands there is for the reader to judge, and to tell the user about. */
function lookOf(path: string): string {
  try {
    const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false })
    return stat === undefined ? '-' : `${stat.ino} ${stat.mode} ${stat.size} ${stat.mtimeNs} ${stat.ctimeNs}`
  } catch (error) {
    return errnoOf(error) ?? 'unknown error'
  }
}
