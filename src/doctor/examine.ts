/** Runs every check with a time limit, and removes all temporary files. */
import { UndoStack } from '../base/undo.ts'
import { findHome, locate } from '../config/locate.ts'
import { findProject, type Project } from '../config/project.ts'
import { CHECKS, type Check } from './checks.ts'
import { type Distribution, thisDistribution } from './distribution.ts'
import { type Finding, fails, hintOf, messageOf } from './finding.ts'
import type { Machine } from './machine.ts'
import { makeScratch } from './scratch.ts'

/** Longer than the time limits inside the checks. */
const CHECK_LIMIT_MS = 30_000

export interface Examination {
  readonly distribution: Distribution
  readonly findings: readonly Finding[]
}

export interface ExamineOptions {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Called before each check. */
  readonly onCheck: (name: string) => void
  readonly checks?: readonly Check[]
  readonly checkLimitMs?: number
}

export async function examine(options: ExamineOptions): Promise<Examination> {
  const undo = new UndoStack()
  const signals = deferSignals()
  try {
    const machine = describeMachine(options.env, undo)
    if ('problem' in machine) return { distribution: thisDistribution(), findings: [machine.problem] }
    const findings: Finding[] = []
    for (const check of options.checks ?? CHECKS) {
      options.onCheck(check.name)
      findings.push(...(await bounded(check, machine, options.checkLimitMs ?? CHECK_LIMIT_MS)))
      // The other checks need Linux. A signal stops the doctor after the current check, which uses the scratch directory.
      if (process.platform !== 'linux' || signals.received() !== undefined) break
    }
    return { distribution: machine.distribution, findings }
  } finally {
    await undo.unwind()
    signals.resend()
  }
}

async function bounded(check: Check, machine: Machine, ms: number): Promise<readonly Finding[]> {
  const id = check.name.replaceAll(' ', '-').toLowerCase()
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<readonly Finding[]>(resolve => {
    timer = setTimeout(() => resolve([fails(id, `${check.name}: no answer in ${ms / 1000} s`)]), ms)
  })
  try {
    return await Promise.race([check.run(machine), late])
  } catch (error) {
    return [fails(id, `could not check ${check.name}`, messageOf(error))]
  } finally {
    clearTimeout(timer)
  }
}

/** Without a usable home there is only this problem to report, because pen's state is in it. */
function describeMachine(env: Machine['env'], undo: UndoStack): Machine | { readonly problem: Finding } {
  let home: string
  let state: string
  try {
    home = findHome()
    state = locate(`${home}/.pen`).real
  } catch (error) {
    return { problem: fails('home', messageOf(error), 'pen stores its state there', hintOf(error)) }
  }
  let project: Project | undefined
  let misplaced: unknown
  try {
    project = findProject()
  } catch (error) {
    misplaced = error
  }
  const scratch = makeScratch(home, state, undo)
  return { distribution: thisDistribution(), project, misplaced, home, state, scratch, env }
}

interface Signals {
  received(): NodeJS.Signals | undefined
  /** Restores the default handling and sends the signal again. */
  resend(): void
}

/** Defers the first signal until the cleanup is done. A second signal acts at once. */
function deferSignals(): Signals {
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
    resend: () => {
      stop()
      if (signal !== undefined) process.kill(process.pid, signal)
    },
  }
}
