/** Runs every check, each bounded in time, and leaves nothing behind. */
import { existsSync, mkdirSync, readdirSync, rmSync } from 'node:fs'
import { UndoStack } from '../base/undo.ts'
import { findHome, locate } from '../config/locate.ts'
import { findProject, type Project } from '../config/project.ts'
import { cgroupName, isAlive, ownerOf } from '../limits/cgroup-name.ts'
import { CHECKS, type Check } from './checks.ts'
import { type Distribution, thisDistribution } from './distribution.ts'
import { type Finding, fails } from './finding.ts'
import type { Machine } from './machine.ts'
import { messageOf } from './message.ts'

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
  const machine = meet(options.env, undo)
  const signals = listen()
  try {
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

function meet(env: Machine['env'], undo: UndoStack): Machine {
  const home = findHome()
  const state = locate(`${home}/.pen`).real
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

/** Where the state is, or would be: so that its file system is the one that is tried. */
function makeScratch(home: string, state: string, undo: UndoStack): string | undefined {
  const above = existsSync(state) ? state : home
  sweep(above)
  const scratch = `${above}/.${cgroupName('doctor')}`
  try {
    mkdirSync(scratch, { mode: 0o700 })
    undo.push('scratch', () => rmSync(scratch, { recursive: true, force: true }))
    return scratch
  } catch {
    return undefined
  }
}

/** What a doctor left that was killed. */
function sweep(above: string): void {
  try {
    for (const name of readdirSync(above)) {
      const owner = /^\.pen-.*-doctor$/.test(name) ? ownerOf(name.slice(1)) : undefined
      if (owner !== undefined && !isAlive(owner)) rmSync(`${above}/${name}`, { recursive: true, force: true })
    }
  } catch {
    // Not ours to look at: nothing of ours is there.
  }
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
