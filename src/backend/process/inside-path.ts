/** Where programs of a process sandbox find pen, when it is not one of the system's programs anyway. */
import type { Plan } from '../../plan/plan.ts'
import { SETSID_PATH } from '../../plan/system-view.ts'
import { isWithin } from '../../policy/files/path.ts'
import { INSIDE } from '../../protocol/guest-paths.ts'

/** The same whether or not only listed programs execute. */
export const withInsidePath = (plan: Plan): Plan =>
  isPenMissing(plan)
    ? {
        ...plan,
        env: plan.env.map(one => (one.name === 'PATH' ? { ...one, value: `${one.value}:${INSIDE}` } : one)),
      }
    : plan

/** Where a policy lists its programs, pen is not to be one more. */
export const isPenMissing = ({ steps }: Plan): boolean =>
  !steps.some(
    step =>
      step.at === SETSID_PATH ||
      (step.op === 'bind' && step.why === 'system' && isWithin(process.execPath, step.at)),
  )
