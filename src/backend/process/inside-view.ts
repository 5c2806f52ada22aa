/**
 * pen's own files at `/run/pen` in a process sandbox. It is a directory of this run, read-only inside, in which the
 * supervisor can put a socket at any time. It also shows pen itself, the client for that socket. It is made while the
 * guard starts, on another core.
 */
import { chmodSync, mkdirSync, rmdirSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { ownProgram } from '../../base/own-program.ts'
import { basename, dirname } from '../../base/posix-path.ts'
import type { UndoStack } from '../../base/undo.ts'
import { cgroupName, namesOfDead } from '../../limits/cgroup-name.ts'
import type { Plan, Step } from '../../plan/plan.ts'
import type { GuestPath, HostPath } from '../../policy/files/path.ts'
import { INSIDE, PEN_INSIDE } from '../../protocol/guest-paths.ts'
import { isPenMissing } from './inside-path.ts'

export interface InsideView {
  readonly plan: Plan
  /** The directory on the host. */
  readonly dir: string
}

export function showInside(
  plan: Plan,
  sandbox: { stateDir: string; run: string },
  undo: UndoStack,
): InsideView {
  const all = `${sandbox.stateDir}/inside`
  const dir = `${all}/${cgroupName(sandbox.run)}`
  // Another uid inside may pass the directory itself. Its parent is closed to all other users.
  mkdirSync(all, { recursive: true, mode: 0o700 })
  for (const name of namesOfDead(all)) rmSync(`${all}/${name}`, { recursive: true, force: true })
  mkdirSync(dir)
  chmodSync(dir, 0o755)
  const program = programToShow(plan, sandbox.stateDir)
  const own = [bind(dir, INSIDE), ...(program === undefined ? [] : [bind(program, PEN_INSIDE)])]
  // A mount needs a mount point.
  const stands = [...own, ...plan.steps].flatMap(({ at }) =>
    dirname(at) === INSIDE ? [`${dir}/${basename(at)}`] : [],
  )
  undo.push('the run directory', () => remove(dir, stands))
  for (const file of stands) writeFileSync(file, '')
  return { dir, plan: { ...plan, steps: afterRun(plan.steps, own) } }
}

const bind = (from: string, at: string) =>
  ({ op: 'bind', from: from as HostPath, at: at as GuestPath, mode: 'ro', why: 'pen' }) as const

/** Inserts pen's mounts before every mount inside them. */
function afterRun(steps: readonly Step[], own: readonly Step[]): readonly Step[] {
  const at = steps.findIndex(step => step.op === 'tmpfs' && step.at === dirname(INSIDE))
  return at < 0 ? steps : [...steps.slice(0, at + 1), ...own, ...steps.slice(at + 1)]
}

/**
 * Undefined when the sandbox has pen already, when it runs only listed programs, and when pen's file cannot be shown.
 */
function programToShow(plan: Plan, stateDir: string): string | undefined {
  const [program, ...source] = ownProgram()
  if (source.length > 0 || plan.listedExec || !isPenMissing(plan)) return undefined
  // Files of root are shown through an idmapped mount, which some file systems lack. The file system of pen's state has
  // it.
  return plan.runAs === 'self' || statSync(program).dev === statSync(stateDir).dev ? program : undefined
}

/** The directory usually has no socket. Then three calls are enough. */
function remove(dir: string, stands: readonly string[]): void {
  try {
    for (const file of stands) unlinkSync(file)
    rmdirSync(dir)
  } catch {
    rmSync(dir, { recursive: true, force: true })
  }
}
