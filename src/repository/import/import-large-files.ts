/** Brings git-lfs objects from the sandbox's repository to the host's. Their name is the hash of their content, which pen checks. */
import { closeSync, existsSync, fstatSync, openSync } from 'node:fs'
import { removeTree } from '../../base/beneath/remove-tree.ts'
import { type GitCall, runGit } from '../git/git-runner.ts'
import type { Refused } from '../sync/plan-sync.ts'
import { type ImportOptions, spend } from './import-objects.ts'

/** As git-lfs itself does: a temporary file, then a rename. */
const WRITE = 'mkdir -p "$1" && cat >"$1/.pen-$2" && mv "$1/.pen-$2" "$1/$2"'

/** A sparse file of a few blocks can have any length. One that is longer than the sandbox's disk is not read. */
const MAX_LARGE_BYTES = 4 * 1024 ** 3

const pathOf = (id: string): string => `lfs/objects/${id.slice(0, 2)}/${id.slice(2, 4)}`

/** Returns those that stay in the sandbox. The commits come over without them. */
export async function importLargeFiles(
  options: ImportOptions,
  ids: readonly string[],
): Promise<readonly Refused[]> {
  const refused: Refused[] = []
  const { host, box, world, scratch, gitDir, directory } = options
  const top = directory.path
  const at: Pick<GitCall, 'gitDir'> = gitDir === undefined ? {} : { gitDir }
  for (const id of ids) {
    if (existsSync(`${top}/${pathOf(id)}/${id}`)) continue
    const file = `${scratch}-large`
    removeTree(file)
    const fd = openSync(file, 'wx+', 0o600)
    try {
      const most = Math.min(MAX_LARGE_BYTES, world.limits.disk)
      const script = `[ "$(stat -c %s "$GIT_DIR/$1")" -le ${most} ] && head -c ${most} "$GIT_DIR/$1"`
      const { code } = await box.run({ script, args: [`${pathOf(id)}/${id}`], outputTo: fd, ...at })
      if (code !== 0 || (await hashOf(file)) !== id) {
        const why = 'it is too large, or has another content than its name says'
        refused.push({ name: `git-lfs object ${id}`, why, fix: 'delete it inside, or raise limits.disk' })
        continue
      }
      const input = openSync(file, 'r')
      try {
        spend(options, { bytes: fstatSync(input).size })
        await runGit(host.run, { script: WRITE, args: [`${top}/${pathOf(id)}`, id], inputFrom: input, ...at })
      } finally {
        closeSync(input)
      }
    } finally {
      closeSync(fd)
      removeTree(file)
    }
  }
  return refused
}

async function hashOf(file: string): Promise<string> {
  const hash = new Bun.CryptoHasher('sha256')
  for await (const chunk of Bun.file(file).stream()) hash.update(chunk)
  return hash.digest('hex')
}
