/** A plan and its policy as text. Values that may be secret are never shown. */
import { printable } from '../base/printable.ts'
import { showBytes } from '../base/quantity.ts'
import type { Merged } from '../policy/merge.ts'
import type { Policy } from '../policy/policy.ts'
import { planData } from './data.ts'
import type { Plan, Step } from './plan.ts'
import { policyText } from './show-policy.ts'

export function showStep(step: Step): string {
  switch (step.op) {
    case 'bind':
      return `bind ${step.mode} ${step.at}${(step.from as string) === step.at ? '' : ` from ${step.from}`}  (${step.why})`
    case 'tmpfs':
      return `tmpfs ${step.at}  (private, ${showBytes(step.size)})`
    case 'cover':
      return `cover ${step.at}  (denied by ${step.why}${step.passable ? '; grants below it are shown' : ''})`
    case 'file':
      return `file ${step.at}  (pen's own)`
    case 'link':
      return `link ${step.at} -> ${step.to}`
    case 'devices':
      return `devices ${step.at}`
    case 'processes':
      return `processes ${step.at}`
    case 'seal':
      return `seal ${step.at}  (read-only from here)`
  }
}

export function planText(policy: Policy, plan: Plan, merged: Pick<Merged, 'layers' | 'expanded'>): string {
  const { network } = plan
  const out = [policyText(policy, merged, network.kind === 'none' ? `none, ${network.why}` : network.kind)]
  const say = (line: string) => out.push(printable(line, 4096))
  say(`plan for backend ${plan.backend}, isolation ${plan.isolation}`)
  say(`  user inside: ${plan.user.uid}:${plan.user.gid}`)
  say(`  command: ${plan.argv.join(' ')}`)
  say(`  in: ${plan.cwd}`)
  for (const step of plan.steps) say(`  ${showStep(step)}`)
  for (const { name, value } of planData(plan).env) say(`  env ${name}=${value}`)
  if (plan.watch.length > 0) say(`  watched, because absent now: ${plan.watch.length} protected places`)
  say(`gaps:${plan.gaps.length === 0 ? ' none' : ''}`)
  for (const gap of plan.gaps)
    say(`  ${gap.name}: ${gap.why}${policy.acceptGaps.includes(gap.name) ? '  (accepted)' : ''}`)
  for (const { name, how } of plan.weaker) say(`weaker: ${name}: ${how}`)
  for (const note of plan.notes) say(`note: ${note}`)
  return out.join('\n')
}
