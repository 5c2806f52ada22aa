import { EXIT, PenError } from '../../../base/error.ts'
import { between, compareLayers } from '../../../review/compare-layers.ts'
import { readLayer } from '../../../review/layer.ts'
import { OpenDirectories } from '../../../review/open-directories.ts'
import { reviewAsMade } from '../../../run/open-review.ts'
import { page } from '../../frame/pager.ts'
import { projectFor } from '../../frame/sandbox-name.ts'
import { defineVerb } from '../../frame/verb.ts'
import { boundedDifferences } from '../../render/bounded-differences.ts'
import { changeData } from '../../render/change-data.ts'
import { comparisonLines, foldPairs, type SandboxName, sandboxWords } from '../../render/comparison.ts'
import { spacedDifference, statLine } from '../../render/review-difference.ts'
import { commitLines } from '../../render/review-list.ts'

export const verb = defineVerb({
  name: 'compare',
  summary: 'Show where two sandboxes with --review differ',
  details:
    'Lists the files that only one of them changed, that both changed alike, and that both changed differently, then the differences of the last kind. Commits that only one of them has are listed as well. With one name, the other is the sandbox without a name. Exit code 0 if they do not differ, 1 otherwise.',
  flags: {
    stat: { kind: 'boolean', about: 'only the list, with the number of lines' },
  },
  positionals: {
    first: { arity: 'one', about: 'name of a sandbox of this project' },
    second: { arity: 'optional', about: 'another one (default: the one without a name)' },
  },
  examples: {
    'pen compare fix-a fix-b': 'before you accept one of them',
    'pen compare fix-a': 'with the sandbox without a name',
  },
  async run({ flags, positionals: { first, second }, env, terminal, answer }) {
    if (first === second)
      throw new PenError('USAGE', { what: 'both names are the same', hint: 'pen ls lists the names' })
    const [one, other] = [await open(first, env), await open(second, env)]
    const comparison = compareLayers(one.review.changes, other.review.changes)
    const { onlyFirst, onlySecond, same, different } = comparison
    const commits = [lacking(one.commits, other.commits), lacking(other.commits, one.commits)] as const
    const count = onlyFirst.length + onlySecond.length + different.length
    const code = count + commits.flat().length === 0 ? EXIT.ok : EXIT.failed
    if (flags.json) {
      const data = {
        version: 1,
        first,
        second: second ?? null,
        onlyFirst: onlyFirst.map(change => changeData(change)),
        onlySecond: onlySecond.map(change => changeData(change)),
        same: same.map(change => changeData(change)),
        different: different.map(pair => pair.map(change => changeData(change))),
        commits: { onlyFirst: commits[0], onlySecond: commits[1] },
      }
      answer(data, '')
      return code
    }
    const { paint } = terminal
    using directories = new OpenDirectories(one.review.places.tree, other.review.places.tree, 'layers')
    const lines = comparisonLines(comparison, [first, second], paint)
    const shown = boundedDifferences(foldPairs(different).listed.map(between), change =>
      flags.stat
        ? statLine(change, directories, paint)
        : spacedDifference(change, directories, paint, [first, second ?? '-']),
    )
    lines.push(...shown.lines)
    if (shown.more > 0) lines.push('', `… and the differences of ${shown.more} more`)
    for (const [i, name] of [first, second].entries())
      lines.push(...commitLines(commits[i] ?? [], { paint, name }, `commits only in ${sandboxWords(name)}:`))
    const only = [onlyFirst.length, onlySecond.length]
    const counts = [first, second].map((name, i) => `${only[i]} only in ${sandboxWords(name)}`)
    lines.push('', [`${different.length} different`, ...counts, `${same.length} the same`].join(', '))
    await page(lines, env, terminal)
    return code
  },
})

/** As the sandbox left them, without merges: what the user changed since is in neither. */
async function open(name: SandboxName, env: Readonly<Record<string, string | undefined>>) {
  const project = projectFor('compare', name)
  if (readLayer(project.stateDir) === undefined)
    throw new PenError('STATE', {
      what: `${sandboxWords(name)} has no review layer`,
      hint:
        name === undefined
          ? 'name two sandboxes: pen compare fix-a fix-b'
          : `pen start --name ${name} --review`,
    })
  return await reviewAsMade(project, env)
}

const lacking = (lines: readonly string[], other: readonly string[]): readonly string[] =>
  lines.filter(line => !other.includes(line))
