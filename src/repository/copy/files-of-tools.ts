/**
 * Names in a git directory that git does not make. Tools keep data there: git-annex moves the user's files into `.git/annex`, and
 * git-crypt has its keys in `.git/git-crypt`. None of it crosses, so a directory that has such a name is not removed.
 */
import { readdirSync } from 'node:fs'
import { errnoOf } from '../../base/error.ts'

/** Of git and git-lfs, and what can be made again. Locks and temporary files are of a git that was killed. */
const OF_GIT =
  /^(?:[A-Z][A-Z_]*|config(?:\.worktree)?|description|gitdir|commondir|locked|(?:next-|shared)?index.*|packed-refs.*|shallow.*|objects|refs|logs|info|hooks|branches|worktrees|modules|lfs|rr-cache|lost-found|rebase-(?:merge|apply)|sequencer|gc\.(?:pid|log)|gitk\.cache|fsmonitor--.*|ADD_EDIT\.patch|addp-hunk-edit\.diff|.*\.lock|\.tmp.*|tmp_.*|\.MERGE_.*)$/
const MAX_NAMES = 10

/** `places` are records of worktrees and submodules, below the directory. Paths below it, hostile text. */
export function filesOfTools(dir: string, places: readonly string[]): readonly string[] {
  return places.flatMap(place => {
    const at = place === '.' ? '' : `${place}/`
    return namesIn(`${dir}/${at}`)
      .filter(name => !OF_GIT.test(name))
      .slice(0, MAX_NAMES)
      .map(name => `${at}${name}`)
  })
}

/** A locked directory is the sandbox's doing: its other names are looked at by git. */
function namesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir)
  } catch (error) {
    if (errnoOf(error) === undefined) throw error
    return []
  }
}
