/** Runs every check with a time limit, and removes all temporary files. */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { findTool } from '../base/find-tool.ts'
import { isAlive } from '../base/kernel/processes.ts'
import { startProgram } from '../base/start-program.ts'
import { UndoStack } from '../base/undo.ts'
import { findHome, locate } from '../config/locate.ts'
import { findProject, type Project } from '../config/project.ts'
import { cgroupName, ownerOf } from '../limits/cgroup-name.ts'
import { CHECKS } from './checks.ts'
import { type Distribution, thisDistribution } from './distribution.ts'
import { type Check, type Finding, fails, hintOf, type Machine, messageOf, type Results } from './finding.ts'

/** Longer than the time limits inside the checks. */
const CHECK_LIMIT_MS = 30_000

interface Examination {
  readonly distribution: Distribution
  readonly findings: readonly Finding[]
}

interface ExamineOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Called before each check. */
  readonly onCheck: (name: string) => void
  readonly checks?: readonly Check[]
  readonly checkLimitMs?: number
}

export async function examine(options: ExamineOptions): Promise<Examination> {
  const undo = new UndoStack()
  const signals = deferSignals()
  const distribution = thisDistribution()
  try {
    const machine = describeMachine(distribution, options.env, undo)
    if ('problem' in machine) return { distribution, findings: [machine.problem] }
    const findings: Finding[] = []
    for (const check of options.checks ?? CHECKS) {
      options.onCheck(check.name)
      const results = await bounded(check, machine, options.checkLimitMs ?? CHECK_LIMIT_MS)
      findings.push(...[results].flat().map(result => ({ id: check.id, ...result })))
      // The other checks need Linux. A signal stops the doctor after the current check, which uses the scratch directory.
      if (process.platform !== 'linux' || signals.received() !== undefined) break
    }
    return { distribution, findings }
  } finally {
    await undo.unwind()
    signals.resend()
  }
}

async function bounded({ name, run }: Check, machine: Machine, ms: number): Promise<Results> {
  const late = Bun.sleep(ms).then(() => fails(`${name}: no answer in ${ms / 1000} s`))
  try {
    return await Promise.race([run(machine), late])
  } catch (error) {
    return fails(`could not check ${name}`, messageOf(error))
  }
}

/** Without a usable home there is only this problem to report, because pen's state is in it. */
function describeMachine(
  distribution: Distribution,
  env: Machine['env'],
  undo: UndoStack,
): Machine | { readonly problem: Finding } {
  let home: string
  let state: string
  try {
    home = findHome()
    state = locate(`${home}/.pen`).real
  } catch (error) {
    return {
      problem: { id: 'home', ...fails(messageOf(error), 'pen stores its state there', hintOf(error)) },
    }
  }
  let project: Project | undefined
  let misplaced: unknown
  try {
    project = findProject()
  } catch (error) {
    misplaced = error
  }
  const scratch = makeScratch(home, state, undo)
  return { distribution, project, misplaced, home, state, scratch, env }
}

/**
 * A temporary directory for the checks. It is removed at the end, also if pen is killed. It is on the file system of pen's state, so
 * that the checks test that one. Undefined if it is not writable.
 */
function makeScratch(home: string, state: string, undo: UndoStack): string | undefined {
  const above = existsSync(state) ? state : home
  sweep(above)
  const scratch = `${above}/.${cgroupName('doctor')}`
  // The watcher starts before the directory exists, because pen can be killed at any time.
  const stopWatcher = startWatcher(scratch)
  try {
    mkdirSync(scratch, { mode: 0o700 })
  } catch {
    stopWatcher()
    return undefined
  }
  undo.push('the scratch directory', () => {
    rmSync(scratch, { recursive: true, force: true })
    stopWatcher()
  })
  return scratch
}

/** Removes the directory twice, because the last process may still write for a moment after pen was killed. */
const REMOVE_AT_END = `trap '' INT HUP TERM; "$2" >/dev/null; rm -rf -- "$1"; sleep 1; rm -rf -- "$1"`

/** A shell that waits for end of input, which comes when pen ends for any reason. */
function startWatcher(scratch: string): () => void {
  const [shell, cat] = [findTool('sh'), findTool('cat')]
  if (shell === undefined || cat === undefined) return () => undefined
  const child = startProgram([shell, '-c', REMOVE_AT_END, 'pen-doctor', scratch, cat], {
    stdio: ['pipe', 'ignore', 'ignore'],
    env: { PATH: '/usr/bin:/bin' },
    cwd: '/',
  })
  child.unref()
  return () => child.kill('SIGKILL')
}

/** Removes directories of earlier checks whose watcher was killed too. */
function sweep(above: string): void {
  try {
    for (const name of readdirSync(above)) {
      const owner = /^\.pen-.*-doctor$/.test(name) ? ownerOf(name.slice(1)) : undefined
      if (owner !== undefined && !isAlive(owner)) rmSync(`${above}/${name}`, { recursive: true, force: true })
    }
  } catch {
    // pen cannot read this directory, so it made nothing there.
  }
}

/** Defers the first signal until the cleanup is done. A second signal acts at once. */
function deferSignals() {
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  let signal: NodeJS.Signals | undefined
  const stop = (): void => {
    for (const name of names) process.off(name, receive)
  }
  const receive = (name: NodeJS.Signals): void => {
    signal = name
    stop()
  }
  for (const name of names) process.on(name, receive)
  return {
    received: () => signal,
    /** Restores the default handling and sends the signal again. */
    resend: () => {
      stop()
      if (signal !== undefined) process.kill(process.pid, signal)
    },
  }
}
