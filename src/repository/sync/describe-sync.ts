/** Lines for the user about a sync: only what is not on the host as expected. */
import { printable, shellWord } from '../../base/printable.ts'
import { HELD_HEAD } from './plan-heads.ts'
import type { Aside } from './plan-sync.ts'
import type { SyncReport } from './sync-report.ts'

const MAX_LINES = 20
const MAX_PATHS = 5

/** `place` is a submodule's directory, or empty. */
export function describeReport(place: string, report: SyncReport, sandbox: string): string[] {
  const where = place === '' ? '' : ` of ${printable(place.slice(1), 200)}`
  const lines = report.aside.map(aside => describeAside(aside, sandbox, where))
  for (const { name, why, fix = 'give it another name inside' } of report.refused)
    lines.push(`git: ${printable(name, 200)}${where} stays in the sandbox: ${why}; fix: ${fix}`)
  for (const name of report.deleted)
    lines.push(
      `git: ${short(name)}${where} was deleted in the sandbox and is still on the host; ${deletion(name)}`,
    )
  for (const record of report.worktrees)
    lines.push(
      `git: the worktree ${printable(record.slice('worktrees/'.length), 200)}${where} was made in the sandbox, and only git in the sandbox knows it; its branch is on the host, and commits without a branch are not`,
    )
  if (report.left > 0)
    lines.push(
      `git: ${report.left} new refs${where} stay in the sandbox for now; to get more of them: pen git import`,
    )
  if (report.isOpen)
    lines.push(
      `git: a rebase, merge, pick or bisect${where} is unfinished in the sandbox; the next run goes on with it`,
    )
  // The indexes differ because of the operation.
  if (report.isHostBusy)
    lines.push(
      `git: the sandbox's new commits${where} wait: a rebase, merge, pick or bisect is unfinished on the host, or its index is locked; finish or abort it there, then: pen git import`,
    )
  else if (report.isStaged)
    lines.push(`git: staged files${where} stay staged in the sandbox; the next run has them`)
  const more = lines.length - MAX_LINES
  return more > 0 ? [...lines.slice(0, MAX_LINES), `git: … and ${more} more: pen git status`] : lines
}

const short = (name: string): string => printable(name.replace(/^refs\/(?:heads|tags)\//, ''), 200)

function deletion(name: string): string {
  if (name.startsWith('stash@')) return `to drop it: git stash drop '${name}'`
  const word = shellWord(name.replace(/^refs\/(?:heads|tags)\//, ''))
  if (word === undefined || name.startsWith('refs/notes/')) return 'to delete it, use git on the host'
  return `to delete it: git ${name.startsWith('refs/tags/') ? 'tag -d' : 'branch -D'} ${word}`
}

function describeAside(
  { name, reason, paths = [], worktree = '' }: Aside,
  sandbox: string,
  where: string,
): string {
  const ref = `refs/pen/${sandbox}/${name.slice('refs/'.length)}`
  const place = shellWord(worktree)
  const merge = `${place === undefined ? 'git' : `git -C ${place}`} merge ${shellWord(ref) ?? ref}`
  const what = `git: ${short(name)}${where}`
  if (name === HELD_HEAD && reason === 'moved-there')
    return `git: HEAD${where} moved on the host too: the sandbox's commits without a branch are at ${printable(ref, 300)}; to make a branch of them: git branch NAME ${shellWord(ref) ?? ref}`
  switch (reason) {
    case 'moved-there':
      return `${what} moved on the host too: the sandbox's commits are at ${printable(ref, 300)}; to merge them: pen git import --merge`
    case 'checked-out':
      return `${what} is checked out in another worktree: the sandbox's commits are at ${printable(ref, 300)}; to merge them there: ${merge}`
    case 'tag':
      return `${what} exists on the host and did not move: the sandbox's tag is at ${printable(ref, 300)}; to take it: git tag -f ${shellWord(name.slice('refs/tags/'.length)) ?? 'NAME'} ${shellWord(ref) ?? ref}`
    case 'consent': {
      const shown = paths.slice(0, MAX_PATHS).map(path => printable(path, 200))
      const more = paths.length > MAX_PATHS ? ` and ${paths.length - MAX_PATHS} more` : ''
      return `${what} waits for you: its commits change what the sandbox may not write (${shown.join(', ')}${more}); look at them with "pen git log", then: pen git import --accept`
    }
  }
}
