/** The directory on the PATH of a process sandbox that has pen, unless pen is a system program. */
import type { Plan } from '../../plan/plan.ts'
import { SETSID_PATH } from '../../plan/system-view.ts'
import { isWithin } from '../../policy/files/path.ts'
import { INSIDE } from '../../protocol/guest-paths.ts'

/** The same for every setting of `tools.exec`. */
export const withInsidePath = (plan: Plan): Plan =>
  isPenMissing(plan)
    ? {
        ...plan,
        env: plan.env.map(one => (one.name === 'PATH' ? { ...one, value: `${one.value}:${INSIDE}` } : one)),
      }
    : plan

/** A policy that lists its programs does not get pen added. */
export const isPenMissing = ({ steps }: Plan): boolean =>
  !steps.some(
    step =>
      step.at === SETSID_PATH ||
      (step.op === 'bind' && step.why === 'system' && isWithin(process.execPath, step.at)),
  )
