/** Runs every check, each bounded in time, and leaves nothing behind. */
import { UndoStack } from '../base/undo.ts'
import { findHome, locate } from '../config/locate.ts'
import { findProject, type Project } from '../config/project.ts'
import { CHECKS, type Check } from './checks.ts'
import { type Distribution, thisDistribution } from './distribution.ts'
import { type Finding, fails } from './finding.ts'
import type { Machine } from './machine.ts'
import { hintOf, messageOf } from './message.ts'
import { makeScratch } from './scratch.ts'

/** Longer than whatever a check itself waits for. */
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
  const signals = listen()
  try {
    const machine = meet(options.env, undo)
    if ('lacks' in machine) return { distribution: thisDistribution(), findings: [machine.lacks] }
    const findings: Finding[] = []
    for (const check of options.checks ?? CHECKS) {
      options.onCheck(check.name)
      findings.push(...(await bounded(check, machine, options.checkLimitMs ?? CHECK_LIMIT_MS)))
      // Without Linux nothing else has a meaning. What a check started works in the scratch: it is let to its end.
      if (process.platform !== 'linux' || signals.heard() !== undefined) break
    }
    return { distribution: machine.distribution, findings }
  } finally {
    await undo.unwind()
    signals.obey()
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
    return [fails(id, `${check.name} could not be tried`, messageOf(error))]
  } finally {
    clearTimeout(timer)
  }
}

/** A home that cannot be used is a finding, and the last one: everything of pen's is in it. */
function meet(env: Machine['env'], undo: UndoStack): Machine | { readonly lacks: Finding } {
  let home: string
  let state: string
  try {
    home = findHome()
    state = locate(`${home}/.pen`).real
  } catch (error) {
    return { lacks: fails('home', messageOf(error), 'pen keeps its state there', hintOf(error)) }
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
  heard(): NodeJS.Signals | undefined
  /** Listens no longer, and ends as the signal would have ended us, but with nothing left. */
  obey(): void
}

/** The second one is not waited with. */
function listen(): Signals {
  const names = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
  let signal: NodeJS.Signals | undefined
  const stop = (): void => {
    for (const name of names) process.off(name, hear)
  }
  const hear = (name: NodeJS.Signals): void => {
    signal = name
    stop()
  }
  for (const name of names) process.on(name, hear)
  return {
    heard: () => signal,
    obey: () => {
      stop()
      if (signal !== undefined) process.kill(process.pid, signal)
    },
  }
}
