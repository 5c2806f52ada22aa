/**
 * Keeps the commits that a sandbox started from, also when the user moves or deletes a branch and collects garbage: the
 * sandbox borrows them. One ref has a log with a line for each tip. git keeps what a log names until its date, which is far
 * away; `git log --all` does not show it.
 */
import { chownSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { errnoOf } from '../base/error.ts'
import { isHostRoot } from '../base/kernel/host-root.ts'
import { basename, dirname } from '../base/posix-path.ts'
import { HostGit } from './host-git.ts'
import { readSynced } from './synced-file.ts'

/** The year 2100. */
const FAR_AWAY = 4_102_444_800

/** Returns the function that removes the pin. */
export function pinTips(gitDir: string, sandbox: string, entry: string): () => Promise<void> {
  const { refs, heads } = readSynced(`${entry}/synced`)
  const tips = [...new Set([...[...heads.values()].flatMap(({ commit }) => commit ?? []), ...refs.values()])]
  const [first] = tips
  if (first === undefined) return async () => undefined
  const zeros = '0'.repeat(first.length)
  const log = tips.map(
    tip => `${zeros} ${tip} pen <pen@localhost> ${FAR_AWAY} +0000\tpen: start of a sandbox\n`,
  )
  const ref = `refs/pen/${sandbox}/start/${basename(entry)}`
  const write = (path: string, text: string): void => {
    const { uid, gid } = statSync(gitDir)
    const first = mkdirSync(dirname(path), { recursive: true })
    writeFileSync(path, text)
    if (!isHostRoot() || uid === 0) return
    for (let made = path; made.length >= (first ?? path).length; made = dirname(made))
      chownSync(made, uid, gid)
  }
  const files = [`${gitDir}/${ref}`, `${gitDir}/logs/${ref}`] as const
  let isWritten = false
  const remove = async (): Promise<void> => {
    const isPacked = isWritten && !existsSync(files[0])
    for (const path of files) tolerate(() => rmSync(path, { force: true }))
    if (isPacked) await removePacked(gitDir, entry, ref)
  }
  tolerate(() => {
    write(files[1], log.join(''))
    write(files[0], `${first}\n`)
    isWritten = true
  })
  return remove
}

/** The user's `git gc` moves refs from their files into one. A ref that stays there keeps its commit, and does no other harm. */
async function removePacked(gitDir: string, entry: string, ref: string): Promise<void> {
  try {
    using host = new HostGit(gitDir, `${entry}/empty`)
    await host.run({ script: 'git update-ref -d "$1"', args: [ref] })
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
  }
}

/** On a full or read-only disk there is no pin. The sync reports the disk, if there is something to sync. */
function tolerate(act: () => void): void {
  try {
    act()
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
  }
}
