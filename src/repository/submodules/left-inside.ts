/**
 * Submodules that were checked out in the sandbox and not on the host. Their commits are in the sandbox's directory alone, so
 * it stays. When the user checks the submodule out, the next sync brings them.
 */
import { PenError } from '../../base/error.ts'
import { printable } from '../../base/printable.ts'
import type { GitDirectory } from '../../plan/facts.ts'
import { emptyModule } from '../../plan/git-steps.ts'
import type { HostPath } from '../../policy/files/path.ts'
import { looksLikeGitDir } from '../../survey/git/directory.ts'
import { findSubmodules, listDirectory } from '../../survey/git/submodules.ts'

interface Inside {
  readonly git: GitDirectory
  readonly workspace: string
  readonly emptyModules: readonly string[]
}

const MAX_NAMED = 5

/** `dir` is the sandbox's directory. Hostile: what pen cannot look at counts. Undefined when there are none. */
export function leftInside({ git, workspace, emptyModules }: Inside, dir: HostPath): string | undefined {
  const filled = emptyModules.filter(place => holds(() => listDirectory(emptyModule(dir, place)).length > 0))
  const names = new Set(filled.map(place => place.slice(workspace.length + 1)))
  const top = `${dir}/modules`
  const isCut = holds(() => {
    const { found, complete } = findSubmodules(top)
    const lacking = found.filter(({ gitDir }) => !looksLikeGitDir(`${git.path}${gitDir.slice(dir.length)}`))
    for (const { gitDir } of lacking) names.add(gitDir.slice(top.length + 1))
    return !complete && found.length > git.submodules.length
  })
  if (isCut) names.add('modules')
  if (names.size === 0) return undefined
  const shown = [...names].slice(0, MAX_NAMED).map(name => printable(name, 200))
  const more = names.size > MAX_NAMED ? ` and ${names.size - MAX_NAMED} more` : ''
  return `git: submodules that were checked out in the sandbox alone stay in it (${shown.join(', ')}${more}); to bring their commits over: git submodule update --init ${shown[0]}, then pen git import`
}

function holds(look: () => boolean): boolean {
  try {
    return look()
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    return true
  }
}
