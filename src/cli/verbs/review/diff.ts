import { EXIT } from '../../../base/error.ts'
import { pathText } from '../../../repository/sync/changed-paths.ts'
import { type Change, digestOf } from '../../../review/change.ts'
import { changesBelow, namedPaths } from '../../../review/choose-changes.ts'
import type { Entry } from '../../../review/entry.ts'
import { findRenames } from '../../../review/find-renames.ts'
import { OpenDirectories } from '../../../review/open-directories.ts'
import { reviewOfProject } from '../../../run/open-review.ts'
import { page } from '../../frame/pager.ts'
import { defineVerb } from '../../frame/verb.ts'
import type { Paint } from '../../render/colour.ts'
import { countLines, reviewDifference } from '../../render/review-difference.ts'
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
      const all = changes.map(change => changeData(change, renames))
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
      const show = flags.stat ? statLine : difference
      let left = MOST_SHOWN
      let more = 0
      for (const change of listed.filter(({ path }) => !renames.has(path))) {
        if (left < 0) more++
        else
          for (const line of show(change, directories, paint)) {
            lines.push(line)
            left -= line.length + LINE_COST
          }
      }
      if (more > 0) lines.push('', `… and the differences of ${more} more: name what you want to see`)
      lines.push('', ...commitLines(commits, list), counted(changes), digestOf(changes, commits))
    }
    await page(lines, env, terminal)
    return code
  },
})

/** A sandbox can fill the memory with differences. The list of changes is always whole. */
const MOST_SHOWN = 32 * 2 ** 20
const LINE_COST = 32

function difference(change: Change, directories: OpenDirectories, paint: Paint): string[] {
  const lines = reviewDifference(change, directories, paint)
  return lines.length === 0 ? [] : ['', ...lines]
}

function statLine(change: Change, directories: OpenDirectories, paint: Paint): string[] {
  const count = countLines(change, directories)
  if (count === undefined) return []
  const [added, removed] = [paint('green', `+${count.added}`), paint('red', `-${count.removed}`)]
  return [`${showPath(change.path)}  ${added} ${removed}`]
}

function changeData(change: Change, renames: ReadonlyMap<string, string>) {
  const { path, kind, before, after, refused = null, conflict = null, attention = null } = change
  const from = renames.get(path)
  return {
    path: pathText(path),
    /** For a path that is not UTF-8: its bytes. */
    bytes: isUtf8(path) ? null : Buffer.from(path, 'latin1').toString('base64'),
    kind,
    renamedFrom: from === undefined ? null : pathText(from),
    before: entryData(before),
    after: entryData(after),
    refused,
    conflict,
    protected: change.protected ?? null,
    attention,
  }
}

const isUtf8 = (path: string): boolean => Buffer.from(pathText(path)).toString('latin1') === path

const entryData = (entry: Entry | undefined) =>
  entry === undefined
    ? null
    : { type: entry.type, mode: entry.mode.toString(8), size: entry.size, content: entry.content ?? null }
