import { EXIT } from '../../../base/error.ts'
import { listCheckpoints } from '../../../review/checkpoint/checkpoint.ts'
import { changesBelow, namedPaths } from '../../../review/choose-changes.ts'
import { discardLayer, discardPaths } from '../../../review/discard-changes.ts'
import { noLayer, readLayer } from '../../../review/layer.ts'
import { lockAccept } from '../../../review/open-review.ts'
import { reviewOfProject } from '../../../run/open-review.ts'
import { confirmRemoval } from '../../frame/ask.ts'
import { defineVerb } from '../../frame/verb.ts'
import { commitLines, counted, leftLines, reviewList } from '../../render/review-list.ts'

export const verb = defineVerb({
  name: 'discard',
  summary: 'Drop what a sandbox with --review changed',
  details:
    'Drops all changes that are not accepted, or those that you name. The project stays as it is. The sandbox must not run. Exit code 1 if something was left.',
  flags: {
    yes: { kind: 'boolean', about: 'do not ask for confirmation' },
  },
  positionals: { path: { arity: 'many', about: 'only these files and directories' } },
  examples: {
    'pen discard': 'ask, then drop everything',
    'pen discard src/draft.ts --yes': 'only this file, without asking',
  },
  async run({ flags, positionals, env, terminal, project, name, answer }) {
    if (readLayer(project.stateDir) === undefined) throw noLayer()
    const lock = await lockAccept(project.stateDir)
    try {
      const { review, commits } = await reviewOfProject(project, env, lock)
      const named = namedPaths(positionals.path, project.cwd, review.places.workspace)
      const changes = changesBelow(review.changes, named)
      const list = { paint: terminal.paint, renames: new Map(), named, name }
      const checkpoints = named.length === 0 ? listCheckpoints(project.stateDir).length : 0
      const withLayer = checkpoints === 0 ? '' : `, and checkpoints: ${checkpoints}`
      if (!flags.yes) {
        for (const line of reviewList(changes, list)) terminal.note(line)
        if (named.length === 0) for (const line of commitLines(commits, list)) terminal.note(line)
        if (
          !confirmRemoval(`This drops ${counted(changes) || 'no change'}${withLayer}.`, 'discard', terminal)
        )
          return EXIT.failed
      }
      if (named.length === 0) await discardLayer(project.stateDir, review)
      const stay = named.length === 0 ? [] : await discardPaths(project.stateDir, review, named)
      const left = stay.map(path => ({ path, why: 'its directory was replaced: discard the directory' }))
      const lines = [`discarded: ${counted(changes) || 'nothing'}${withLayer}`, ...leftLines(left, list)]
      answer({ version: 1, discarded: changes.map(({ path }) => path), left }, lines)
      return left.length === 0 ? EXIT.ok : EXIT.failed
    } finally {
      lock.release()
    }
  },
})
