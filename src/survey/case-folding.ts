/**
 * Whether `.ENV` opens the file `.env`, on file systems that decide this outside the kernel: FUSE, virtiofs, 9p, shares of
 * a virtual machine's host. There the kernel sees two names, and a mount on one does not cover the other. File systems
 * that fold case in the kernel have one name for all spellings, and a mount covers all of them.
 */
import { lstatSync, opendirSync, readdirSync, statfsSync } from 'node:fs'
import { basename, dirname } from '../base/posix-path.ts'

/** ext4, f2fs, vfat, exfat, ntfs3, cifs and smb, xfs, tmpfs, hfsplus, bcachefs: they compare names themselves. */
const FOLD_IN_THE_KERNEL = new Set([
  0xef53, 0xf2f52010, 0x4d44, 0x2011bab0, 0x7366746e, 0xff534d42, 0xfe534d42, 0x58465342, 0x01021994, 0x482b,
  0xca451a4e,
])

/** Usually one look-up is enough: the other spelling of an existing name is absent. */
export function foldsNames(workspace: string): boolean {
  try {
    const asked = nameToAsk(workspace)
    if (asked !== undefined && !isThere(`${asked.dir}/${otherSpelling(asked.name)}`)) return false
    if (FOLD_IN_THE_KERNEL.has(statfsSync(workspace).type)) return false
    // Both spellings exist, or one file has both. In an empty directory pen cannot tell.
    return asked === undefined || !readdirSync(asked.dir).includes(otherSpelling(asked.name))
  } catch {
    // pen cannot read it, so no sandbox can.
    return false
  }
}

/** The workspace's own name, if its parent is on the same file system; otherwise a name in the workspace. */
function nameToAsk(workspace: string): { readonly dir: string; readonly name: string } | undefined {
  const above = dirname(workspace)
  const name = basename(workspace)
  if (hasCase(name) && lstatSync(above).dev === lstatSync(workspace).dev) return { dir: above, name }
  const entries = opendirSync(workspace)
  try {
    for (let entry = entries.readSync(); entry !== null; entry = entries.readSync())
      if (hasCase(entry.name)) return { dir: workspace, name: entry.name }
    return undefined
  } finally {
    entries.closeSync()
  }
}

/** ASCII letters only: every file system folds these in the same way. */
const hasCase = (name: string): boolean => /[A-Za-z]/.test(name)
const otherSpelling = (name: string): string =>
  name.replace(/[A-Za-z]/g, letter => String.fromCharCode(letter.charCodeAt(0) ^ 0x20))
const isThere = (path: string): boolean => lstatSync(path, { throwIfNoEntry: false }) !== undefined
