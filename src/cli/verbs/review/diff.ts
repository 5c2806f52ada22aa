import { EXIT } from '../../../base/error.ts'
import { digestOf } from '../../../review/change.ts'
import { changesBelow, namedPaths } from '../../../review/choose-changes.ts'
import { findRenames } from '../../../review/find-renames.ts'
import { OpenDirectories } from '../../../review/open-directories.ts'
import { reviewOfProject } from '../../../run/open-review.ts'
import { page } from '../../frame/pager.ts'
import { defineVerb } from '../../frame/verb.ts'
import { boundedDifferences } from '../../render/bounded-differences.ts'
import { changeData } from '../../render/change-data.ts'
import { spacedDifference, statLine } from '../../render/review-difference.ts'
import {
  commitLines,
  counted,
  leftLines,
  listedGroups,
  reviewList,
  showPath,
} from '../../render/review-list.ts'
import { showWithTool } from './show-with-tool.ts'

export const verb = defineVerb({
  name: 'diff',
  summary: 'Show what a sandbox with --review changed',
  details:
    'Lists all changes that are not in the project yet, then shows each file. Deleted files, and files that your machine would run, come first. A tree that git ignores, or a new node_modules, is one line: name it to open it. The digest is for pen accept --yes --expect. Exit code 0 if there is no change, 1 otherwise.',
  flags: {
    stat: { kind: 'boolean', about: 'only the list, with the number of lines' },
    'name-only': { kind: 'boolean', about: 'only the paths' },
    tool: { kind: 'string', value: 'COMMAND', about: 'show two directories in this program instead' },
  },
  positionals: { path: { arity: 'many', about: 'only these files and directories' } },
  examples: {
    'pen diff': 'everything',
    'pen diff src package.json': 'only these',
    'pen diff --tool meld': 'in another program',
  },
  async run({ flags, positionals, env, terminal, project, name, answer }) {
    const { review, commits: allCommits } = await reviewOfProject(project, env)
    const { workspace, tree } = review.places
    const named = namedPaths(positionals.path, project.cwd, workspace)
    const changes = changesBelow(review.changes, named)
    const commits = named.length === 0 ? allCommits : []
    using directories = new OpenDirectories(workspace, tree, 'read')
    const code = changes.length + commits.length === 0 ? EXIT.ok : EXIT.failed
    if (flags.tool !== undefined) {
      await showWithTool(flags.tool, changes, directories, { parent: review.places.layer, env })
      return code
    }
    const renames = findRenames(changes, directories)
    if (flags.json) {
      const all = changes.map(change => changeData(change, renames.get(change.path)))
      answer({ version: 1, digest: digestOf(changes, commits), changes: all, commits }, '')
      return code
    }
    if (flags['name-only']) {
      for (const { path } of changes) terminal.print(showPath(path))
      return code
    }
    const { paint } = terminal
    const list = { paint, renames, named, name }
    const lines = leftLines(review.recovered, list)
    if (code === EXIT.ok) lines.push('no changes')
    else {
      lines.push(...reviewList(changes, list))
      const listed = listedGroups(changes, list).flatMap(([, inside]) => inside)
      const show = flags.stat ? statLine : spacedDifference
      const shown = boundedDifferences(
        listed.filter(({ path }) => !renames.has(path)),
        change => show(change, directories, paint),
      )
      lines.push(...shown.lines)
      if (shown.more > 0)
        lines.push('', `… and the differences of ${shown.more} more: name what you want to see`)
      lines.push('', ...commitLines(commits, list), counted(changes), digestOf(changes, commits))
    }
    await page(lines, env, terminal)
    return code
  },
})
