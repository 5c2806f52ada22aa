/**
 * Keeps the commits that a sandbox started from, also when the user moves or deletes a branch and collects garbage: the
 * sandbox borrows them. One ref has a log with a line for each tip. git keeps what a log names until its date, which is far
 * away; `git log --all` does not show it. The owner of the repository writes it: links there must not lead root's pen away.
 */
import { existsSync } from 'node:fs'
import { errnoOf, PenError } from '../../base/error.ts'
import { basename } from '../../base/posix-path.ts'
import type { At, GitCall, GitRunner } from '../git/git-runner.ts'
import { HostGit } from '../git/host-git.ts'
import { readSynced } from '../sync/synced-file.ts'

/** The year 2100. */
const FAR_AWAY = 4_102_444_800

const PIN = `log="$GIT_DIR/logs/$1"; mkdir -p "\${log%/*}" && cat >"$log" && git update-ref "$1" "$2"`
/** For objects that are there: git calls a line without its object broken. A run that has a pin keeps the lines. */
const ADD = `log="$GIT_DIR/logs/$1"; new=; [ -e "$log" ] || new=1
lines=$(git cat-file --batch-check='%(objectname)' | sed -n "s/^[0-9a-f]*$/$2 & $3/p")
[ -n "$lines" ] || exit 0
mkdir -p "\${log%/*}" && printf '%s\n' "$lines" >>"$log" || exit
[ -n "$new" ] || exit 0
id=\${lines#* }; git update-ref "$1" "\${id%% *}" && echo made`
/** git leaves the empty directories of the second level. */
const UNPIN = `git update-ref --no-deref -d "$1"; rmdir "$GIT_DIR/refs/pen" "$GIT_DIR/logs/refs/pen" 2>/dev/null || :`

export interface Pinned {
  readonly gitDir: string
  readonly sandbox: string
  /** pen's directory for the run. */
  readonly entry: string
}

export async function pinTips(pinned: Pinned): Promise<void> {
  const { refs, heads, stashes } = readSynced(`${pinned.entry}/synced`)
  const checkedOut = [...heads.values()].flatMap(({ commit }) => commit ?? [])
  const tips = [...new Set([...checkedOut, ...refs.values(), ...stashes])]
  const [first] = tips
  if (first !== undefined)
    await run(pinned, { script: PIN, args: [refOf(pinned), first], input: logOf(tips) })
}

const zerosFor = (id: string): string => '0'.repeat(id.length)
const SAID = `pen <pen@localhost> ${FAR_AWAY} +0000\tpen: of a sandbox`

const logOf = (tips: readonly string[]): string =>
  tips.map(tip => `${zerosFor(tip)} ${tip} ${SAID}\n`).join('')

/** Objects that have no ref yet, while pen judges them: the user may collect garbage. Returns what removes the pin again. */
export async function pinObjects(
  git: GitRunner,
  at: At,
  pinned: Pick<Pinned, 'sandbox' | 'entry'>,
  tips: readonly string[],
): Promise<() => Promise<void>> {
  const [ref, [first = '']] = [refOf(pinned), tips]
  const call = {
    script: ADD,
    args: [ref, zerosFor(first), SAID],
    input: tips.map(tip => `${tip}\n`).join(''),
  }
  const { stdout } = await git({ ...call, ...at })
  return async () => {
    if (stdout.length > 0) await git({ script: UNPIN, args: [ref], ...at })
  }
}

/** git removes the log together with the ref, also when `git gc` has packed it. */
export async function removePin(pinned: Pinned): Promise<void> {
  const ref = refOf(pinned)
  // Most short runs have no pin, and git would take longer than they do.
  if (existsSync(`${pinned.gitDir}/logs/${ref}`)) await run(pinned, { script: UNPIN, args: [ref] })
}

const refOf = ({ sandbox, entry }: Pick<Pinned, 'sandbox' | 'entry'>): string =>
  `refs/pen/${sandbox}/start/${basename(entry)}`

/** Without git, or on a full or read-only disk, there is no pin. The sync reports that, if there is something to sync. */
async function run({ gitDir, entry }: Pinned, call: GitCall): Promise<void> {
  try {
    using host = new HostGit(gitDir, `${entry}/empty`)
    await host.run(call)
  } catch (error) {
    if (errnoOf(error) === undefined && !(error instanceof PenError)) throw error
  }
}
