/**
 * What of pen's own a process sandbox shows at `/run/pen`: a directory of this run, read-only inside, in which the supervisor may
 * put a socket at any time later; and pen itself, the client for it. Made while the guard starts, on another core.
 */
import {
  chmodSync,
  mkdirSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs'
import { isAlive } from '../../base/kernel/processes.ts'
import { ownProgram } from '../../base/own-program.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import type { UndoStack } from '../../base/undo.ts'
import { cgroupName, ownerOf } from '../../limits/cgroup-name.ts'
import type { Plan, Step } from '../../plan/plan.ts'
import type { GuestPath, HostPath } from '../../policy/files/path.ts'
import { INSIDE, PEN_INSIDE } from '../../protocol/guest-paths.ts'
import { isPenMissing } from './inside-path.ts'

export interface InsideView {
  readonly plan: Plan
  /** On the host. */
  readonly dir: string
}

export function showInside(
  plan: Plan,
  sandbox: { stateDir: string; run: string },
  undo: UndoStack,
): InsideView {
  const all = `${sandbox.stateDir}/inside`
  const dir = `${all}/${cgroupName(sandbox.run)}`
  // Its own entry may be passed by another uid inside; what is above it is closed to everybody else.
  mkdirSync(all, { recursive: true, mode: 0o700 })
  sweep(all)
  mkdirSync(dir)
  chmodSync(dir, 0o755)
  const program = programToShow(plan, sandbox.stateDir)
  const own = [bind(dir, INSIDE), ...(program === undefined ? [] : [bind(program, PEN_INSIDE)])]
  // A mount needs something to stand on.
  const stands = [...own, ...plan.steps].flatMap(({ at }) =>
    dirname(at) === INSIDE ? [`${dir}/${basename(at)}`] : [],
  )
  undo.push('the run directory', () => remove(dir, stands))
  for (const file of stands) writeFileSync(file, '')
  return { dir, plan: { ...plan, steps: afterRun(plan.steps, own) } }
}

const bind = (from: string, at: string) =>
  ({ op: 'bind', from: from as HostPath, at: at as GuestPath, mode: 'ro', why: 'pen' }) as const

/** Before anything that stands in it. */
function afterRun(steps: readonly Step[], own: readonly Step[]): readonly Step[] {
  const at = steps.findIndex(step => step.op === 'tmpfs' && step.at === dirname(INSIDE))
  return at < 0 ? steps : [...steps.slice(0, at + 1), ...own, ...steps.slice(at + 1)]
}

/** Undefined where it is there already, where nothing but the system's programs runs, and where it could not be shown. */
function programToShow(plan: Plan, stateDir: string): string | undefined {
  const [program, ...source] = ownProgram()
  if (source.length > 0 || plan.listedExec || !isPenMissing(plan)) return undefined
  // Root's files are shown through a mapping, which not every file system knows; that of pen's state does.
  return plan.runAs === 'self' || statSync(program).dev === statSync(stateDir).dev ? program : undefined
}

/** Without a socket in it, which is most often so, three calls are enough. */
function remove(dir: string, stands: readonly string[]): void {
  try {
    for (const file of stands) unlinkSync(file)
    rmdirSync(dir)
  } catch {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** What a killed pen left. */
function sweep(all: string): void {
  for (const name of readdirSync(all)) {
    const owner = ownerOf(name)
    if (owner !== undefined && !isAlive(owner)) rmSync(`${all}/${name}`, { recursive: true, force: true })
  }
}
