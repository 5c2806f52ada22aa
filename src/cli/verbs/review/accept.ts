import { EXIT, type ExitCode, PenError } from '../../../base/error.ts'
import type { Project } from '../../../config/project.ts'
import { takeCheckpoint } from '../../../lifecycle/take-checkpoint.ts'
import { shownCommits } from '../../../repository/consent/held-commits.ts'
import { isOfReview } from '../../../repository/own-repository.ts'
import { syncAll } from '../../../repository/sync-all.ts'
import { type Application, applyChanges } from '../../../review/apply-changes.ts'
import { digestOf } from '../../../review/change.ts'
import { listCheckpoints } from '../../../review/checkpoint/checkpoint.ts'
import { changesBelow, chooseChanges, namedPaths } from '../../../review/choose-changes.ts'
import { removeWhenAccepted } from '../../../review/discard-changes.ts'
import { noLayer, readLayer } from '../../../review/layer.ts'
import { lockAccept, type Review } from '../../../review/open-review.ts'
import { reviewedCommits, reviewOfProject, UNREADABLE, whileNoneRuns } from '../../../run/open-review.ts'
import { canAsk, confirm } from '../../frame/ask.ts'
import type { Terminal } from '../../frame/terminal.ts'
import { defineVerb } from '../../frame/verb.ts'
import { commitLines, counted, leftLines, reviewList } from '../../render/review-list.ts'
import { ownRepositories } from '../git/status.ts'
import { askEach } from './ask-each.ts'
import { commitOnBranch } from './commit-on-branch.ts'

export const verb = defineVerb({
  name: 'accept',
  summary: 'Apply what a sandbox with --review changed',
  details:
    'Applies what pen diff lists, file by file: each is as it was shown, or stays as it is. Protected paths are applied only when you name them. A file that you changed too is merged with git where that is clean; otherwise it stays. Accepting everything also brings the commits of the sandbox. Exit code 1 if something was left.',
  flags: {
    interactive: { kind: 'boolean', about: 'ask about each file' },
    yes: { kind: 'boolean', about: 'do not ask' },
    overwrite: { kind: 'boolean', about: 'of the named files, take the version of the sandbox over yours' },
    expect: { kind: 'string', value: 'sha256:…', about: 'only if this is what pen diff printed' },
    commit: {
      kind: 'string',
      value: 'MESSAGE',
      about: 'make a commit on a new branch; the working tree stays',
    },
    branch: { kind: 'string', value: 'BRANCH', about: 'the branch of that commit' },
  },
  positionals: { path: { arity: 'many', about: 'only these files and directories' } },
  examples: {
    'pen accept': 'show the changes, ask, and apply them',
    'pen accept src .vscode/tasks.json': 'only these, also where they are protected',
    'pen accept --overwrite src/a.ts': 'drop your own edit of a file that both sides changed',
    'pen accept --yes --expect sha256:…': 'what pen diff showed, or nothing',
    'pen accept --commit "add a parser"': 'as a commit on a new branch',
  },
  async run({ flags, positionals, env, terminal, project, name, answer }) {
    if (!flags.yes && (flags.json || !canAsk())) throw noTerminal()
    if (readLayer(project.stateDir) === undefined) throw noLayer()
    const lock = await lockAccept(project.stateDir)
    try {
      const { prepared, review, commits: allCommits } = await reviewOfProject(project, env, lock)
      const { paint } = terminal
      const named = namedPaths(positionals.path, project.cwd, review.places.workspace)
      const shown = changesBelow(review.changes, named)
      const commits = named.length === 0 ? allCommits : []
      if (flags.overwrite && named.length === 0) throw nothingNamed()
      if (flags.expect !== undefined && flags.expect !== digestOf(shown, commits)) throw changedSince()
      const { chosen, left } = chooseChanges(review.changes, named, review.guard, flags.overwrite)
      if (!flags.json) {
        const list = { paint, renames: new Map(), named, name }
        for (const line of reviewList(shown, list)) terminal.print(line)
        for (const line of commitLines(commits, list)) terminal.print(line)
        if (left.length > 0) terminal.print(paint('bold', 'not applied:'))
        for (const line of leftLines([...review.recovered, ...left], list)) terminal.print(line)
      }
      const nothing = chosen.length + commits.length === 0
      const asksEach = flags.interactive && chosen.length > 0
      const isAgreed =
        flags.yes || nothing || asksEach || confirm(`Apply ${counted(chosen) || 'commits'}?`, terminal)
      const agreed = flags.interactive ? askEach(chosen, review, { terminal, name }) : isAgreed ? chosen : []
      if (flags.commit !== undefined) {
        const options = { message: flags.commit, branch: flags.branch, named, prepared, review }
        const { branch, commit, lines } = await commitOnBranch(agreed, options)
        answer({ version: 1, branch, commit, left }, lines)
        return left.length === 0 ? EXIT.ok : EXIT.failed
      }
      if (agreed.length > MANY) terminal.note(`pen: applying ${agreed.length} changes …`)
      const apply = async () => applyChanges(agreed, review.places, review.accepted)
      const isProtected = agreed.some(change => change.protected !== undefined)
      const result = await (isProtected ? whileNoneRuns(project, apply) : apply())
      if (result === undefined) throw notAlone()
      const hasConflict = !flags.overwrite && shown.some(({ conflict }) => conflict !== undefined)
      const isAll = isAgreed && named.length === 0 && agreed.length === chosen.length && !hasConflict
      // A sandbox that runs may have made others.
      const now = await reviewedCommits(prepared)
      const canSync = isAgreed && !now.includes(UNREADABLE) && now.join('\n') === commits.join('\n')
      const choice = { isAll, canSync, hasConflict, left }
      return await finish(result, review, { ...choice, env, terminal, answer, project })
    } finally {
      lock.release()
    }
  },
})

/** These take a second or more. */
const MANY = 1000

interface Finish {
  /** The user chose everything that can be applied. */
  readonly isAll: boolean
  /** Its commits are those that the user was shown and agreed to. */
  readonly canSync: boolean
  /** A file that both sides changed is left. */
  readonly hasConflict: boolean
  readonly left: readonly { readonly path: string; readonly why: string }[]
  readonly env: Readonly<Record<string, string | undefined>>
  readonly terminal: Terminal
  readonly project: Project
  readonly answer: (data: unknown, text: string | readonly string[]) => void
}

/** The commits of the sandbox come when its files are there. */
async function finish(result: Application, review: Review, options: Finish): Promise<ExitCode> {
  const { applied, stopped } = result
  const list = { paint: options.terminal.paint, name: options.project.name }
  const left = [...options.left, ...result.left]
  const hasFiles = result.left.length === 0 && (options.isAll || (await review.again()).length === 0)
  const lines = applied.length === 0 ? ['nothing was applied'] : [`applied: ${counted(applied)}`]
  lines.push(...leftLines(result.left, list))
  if (options.hasConflict)
    lines.push("to take the sandbox's version: pen accept --overwrite FILE; to keep yours: pen discard FILE")
  if (stopped !== undefined) lines.push(`${stopped}: free some space, then go on: pen accept`)
  // A named file may be the last one, and then commits were not shown.
  const canSync = hasFiles && options.canSync
  let isComplete = canSync || !options.isAll || !hasFiles
  if (hasFiles && !canSync)
    lines.push('git: commits that you were not shown, or did not agree to, stay in the sandbox: pen diff')
  // Where files are held back, the commits that have them are too.
  const consent = left.length === 0 ? shownCommits(options.project.stateDir) : new Set<string>()
  if (canSync)
    for (const repository of (await ownRepositories(options.project, options.env)).repositories) {
      const isReview = isOfReview(repository.entry)
      const synced = await syncAll(isReview ? { ...repository, consent } : repository)
      lines.push(...synced.lines.map(line => (isReview ? line.replace(BY_IMPORT, 'pen accept') : line)))
      isComplete &&= synced.isComplete
    }
  const { stateDir } = options.project
  const checkpoints = listCheckpoints(stateDir).length
  const isDone = canSync && isComplete && (await removeWhenAccepted(stateDir, review))
  if (isDone && checkpoints > 0) lines.push(`removed with the layer: checkpoints: ${checkpoints}`)
  if (!isDone && applied.length > 0) lines.push(await checkpointAfter(stateDir))
  options.answer(
    { version: 1, applied: applied.map(({ path }) => path), left, stopped: stopped ?? null, isDone },
    lines,
  )
  return left.length === 0 && isComplete ? EXIT.ok : EXIT.failed
}

/** What is left may be spoiled by what the sandbox does next. */
async function checkpointAfter(stateDir: string): Promise<string> {
  try {
    const { name } = await takeCheckpoint(stateDir, 'accept')
    return `the layer as it is now: checkpoint ${name}`
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    return `no checkpoint was made: ${error.message}`
  }
}

const BY_IMPORT = 'pen git import --accept'

const nothingNamed = (): PenError =>
  new PenError('USAGE', {
    what: '--overwrite drops your own edits, so it needs the names of the files',
    hint: 'pen accept --overwrite FILE',
  })

const noTerminal = (): PenError =>
  new PenError('USAGE', {
    what: 'pen accept asks before it applies, and stdin or stderr is not a terminal',
    hint: 'pen diff, then: pen accept --yes --expect sha256:…, with its digest',
  })

/** A sandbox without review could write the file while it is staged. */
const notAlone = (): PenError =>
  new PenError('STATE', {
    what: 'protected paths are accepted only while no sandbox of the project runs; nothing was applied',
    hint: 'end each sandbox (pen stop), then repeat the command',
  })

const changedSince = (): PenError =>
  new PenError('STATE', {
    what: 'the changes are not those of this digest any more',
    at: '--expect',
    hint: 'pen diff',
  })
