import { PenError } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import { showMillis } from '../../../base/quantity.ts'
import { editFileGrants } from '../../../config/grants/file-grants.ts'
import { identify } from '../../../config/grants/grant-target.ts'
import { loadPolicy } from '../../../config/load.ts'
import { fromCwd } from '../../frame/policy-flags.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'grant',
  summary: 'Give sandboxes access to a file or directory',
  details:
    'The path is not mounted: programs inside use pen files, and every access is logged. Applies at once, until pen revoke or --for. Paths in files.deny cannot be granted; to write in the project itself, use files.write.',
  flags: {
    rw: { kind: 'boolean', about: 'allow writing too' },
    exec: { kind: 'boolean', about: 'keep the executable bit, in both directions' },
    for: { kind: 'duration', value: 'DURATION', about: 'for this time, for example 10m' },
  },
  positionals: { path: { arity: 'one', about: 'a file, or a directory with everything in it' } },
  examples: {
    'pen grant ~/notes/todo.txt --for 10m': 'allow reading one file for ten minutes',
    'pen grant ~/reports --rw': 'allow reading and writing a directory until pen revoke',
  },
  async run({ flags, positionals, project, answer }) {
    const { policy } = await loadPolicy(project, { flags: {}, offline: true, allowUserExpansion: false })
    const question = { policy, world: project.world, write: flags.rw, shown: positionals.path }
    const target = identify(fromCwd(positionals.path, project), question)
    const until = flags.for === undefined ? undefined : Date.now() + flags.for
    const grant = { ...target, write: flags.rw, execute: flags.exec, until }
    if (!Number.isSafeInteger(until ?? 0)) throw new PenError('USAGE', { what: '--for is too long' })
    await editFileGrants(project, grants => [...grants.filter(({ path }) => path !== grant.path), grant])
    const how = `${flags.rw ? 'read and write' : 'read only'}${flags.exec ? ', executable' : ''}`
    const life = flags.for === undefined ? 'until pen revoke' : `for ${showMillis(flags.for)}`
    answer(
      {
        granted: grant.path,
        kind: grant.kind,
        write: grant.write,
        execute: grant.execute,
        until: until === undefined ? null : new Date(until).toISOString(),
        project: project.world.workspace,
      },
      `granted for ${printable(project.world.workspace)}: ${printable(grant.path)} (${how}), ${life}`,
    )
  },
})
