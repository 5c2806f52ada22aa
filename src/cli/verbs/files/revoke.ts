import { EXIT, PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { editFileGrants } from '../../../config/grants/file-grants.ts'
import type { Project } from '../../../config/project.ts'
import { absolute } from '../../../policy/files/path.ts'
import { fromCwd } from '../../frame/policy-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'revoke',
  summary: 'Remove a grant; running transfers stop at once',
  details: 'Exit code 1 if there was no such grant.',
  flags: { all: { kind: 'boolean', about: 'remove all grants of this project' } },
  positionals: {
    path: { arity: 'optional', about: 'the path, as given to pen grant or as shown by pen grants' },
  },
  examples: {
    'pen revoke ~/reports': 'remove one grant',
    'pen revoke --all': 'remove all grants',
  },
  async run({ flags, positionals, project, answer }) {
    const { path } = positionals
    if ((path === undefined) !== flags.all)
      throw new PenError('USAGE', {
        what: flags.all ? '--all takes no path' : 'no path given',
        hint: 'pen revoke PATH, or pen revoke --all',
      })
    const named = path === undefined ? undefined : spellings(path, project)
    const revoked: string[] = []
    await editFileGrants(
      project,
      grants => {
        const gone = grants.filter(grant => named === undefined || named.has(grant.path))
        revoked.push(...gone.map(grant => grant.path))
        return grants.filter(grant => !gone.includes(grant))
      },
      flags.all ? 'discard' : 'refuse',
    )
    answer(
      { revoked, project: project.world.workspace },
      revoked.length === 0
        ? 'nothing to revoke'
        : `revoked: ${revoked.map(one => printable(one)).join(', ')}`,
    )
    return revoked.length === 0 ? EXIT.failed : EXIT.ok
  },
})

/** The path itself and its target, because a granted path may be missing or a link now. */
function spellings(path: string, project: Project): ReadonlySet<string> {
  const made = absolute(fromCwd(path, project), project.world)
  if (!made.ok) throw new PenError('PATH_REFUSED', { what: `${path}: ${made.why}`, at: path })
  return new Set([made.value, project.world.locate(made.value).real])
}
