import { EXIT, PenError } from '../../../base/error.ts'
import { resolve } from '../../../base/posix-path.ts'
import { printable } from '../../../base/printable.ts'
import { showMillis } from '../../../base/quantity.ts'
import { editFileGrants } from '../../../config/grants/file-grants.ts'
import { identify } from '../../../config/grants/grant-target.ts'
import { loadPolicy } from '../../../config/load.ts'
import { findProject } from '../../../config/project.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'grant',
  summary: 'Give sandboxes access to a file or directory',
  details:
    'It is not mounted: programs inside get at it by pen files, and every access is in pen logs. A running sandbox has it at once. It holds until pen revoke, or for the time that --for names. What files.deny covers is not granted, and nothing in the project is granted for writing: that is what files.write is for.',
  flags: {
    rw: { kind: 'boolean', about: 'also let them put new content there; without it they read' },
    exec: { kind: 'boolean', about: 'let files there be executable, both ways' },
    for: { kind: 'duration', value: 'DURATION', about: 'for this long, as 90s, 10m or 1h' },
    ...jsonFlag,
  },
  positionals: { path: { arity: 'one', about: 'a file, or a directory with all that is in it' } },
  examples: [
    { line: 'pen grant ~/notes/todo.txt --for 10m', does: 'one file, for reading, ten minutes' },
    { line: 'pen grant ~/reports --rw', does: 'a directory, until it is revoked' },
  ],
  async run({ flags, positionals, terminal }) {
    const project = findProject()
    const { policy } = await loadPolicy(project, { flags: {}, offline: true, allowUserExpansion: false })
    const written = positionals.path
    const text = written.startsWith('/') || written.startsWith('~') ? written : resolve(project.cwd, written)
    const target = identify(text, { policy, world: project.world, write: flags.rw, shown: written })
    const until = flags.for === undefined ? undefined : Date.now() + flags.for
    const grant = { ...target, write: flags.rw, execute: flags.exec, until }
    if (!Number.isSafeInteger(until ?? 0)) throw new PenError('USAGE', { what: '--for is too long' })
    await editFileGrants(project, grants => [...grants.filter(({ path }) => path !== grant.path), grant])
    const how = `${flags.rw ? 'read and write' : 'read only'}${flags.exec ? ', executable' : ''}`
    const life = flags.for === undefined ? 'until pen revoke' : `for ${showMillis(flags.for)}`
    if (flags.json)
      terminal.printJson({
        granted: grant.path,
        kind: grant.kind,
        write: grant.write,
        execute: grant.execute,
        until: until === undefined ? null : new Date(until).toISOString(),
        project: project.world.workspace,
      })
    else
      terminal.print(
        `granted for ${printable(project.world.workspace)}: ${printable(grant.path)} (${how}), ${life}`,
      )
    return EXIT.ok
  },
})
