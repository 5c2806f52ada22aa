/** Several commands in one sandbox, and the result of each. */
import { QUEUE } from '../../stopwatch.ts'
import { quote } from '../box.ts'
import type { Project, Ran, RunOptions } from './project.ts'

export interface Step {
  readonly code: number
  readonly ms: number
  /** Standard output and standard error. */
  readonly said: string
}

/** Like the stopwatch: time that other processes took does not count. */
const RUNNER = `waited() {
  sum=0
  for of in cpu io; do read -r _ _ _ _ total 2>/dev/null < /proc/pressure/$of && sum=$((sum + \${total#total=})); done
}
step() {
  waited; before=$sum
  began=$(date +%s%N)
  said=$(timeout 40 /bin/bash -c "$2" 2>&1 </dev/null | base64 -w0; exit \${PIPESTATUS[0]})
  code=$?
  took=$(( ($(date +%s%N) - began) / 1000 )); waited
  printf '%s\\t%s\\t%s\\t%s\\n' "$1" $code $(( (took - ${QUEUE} * (sum - before)) / 1000 )) "$said"
}`

export async function runSteps<Name extends string>(
  project: Project,
  steps: Readonly<Record<Name, string>>,
  options: RunOptions = {},
): Promise<Ran & { readonly steps: Readonly<Record<Name, Step>> }> {
  const lines = Object.entries<string>(steps).map(
    ([name, command]) => `step ${quote(name)} ${quote(command)}`,
  )
  project.write('.steps.sh', `${RUNNER}\n${lines.join('\n')}\n`)
  const ran = await project.run('exec /bin/bash .steps.sh', options)
  const found = ran.out
    .trim()
    .split('\n')
    .map(line => line.split('\t'))
    .map(([name = '', code, ms, said = '']): [string, Step] => [
      name,
      { code: Number(code), ms: Number(ms), said: Buffer.from(said, 'base64').toString('latin1') },
    ])
  const missing = Object.keys(steps).filter(name => !found.some(([its]) => its === name))
  if (missing.length > 0)
    throw new Error(`did not run: ${missing.join(', ')}; pen said: ${ran.err}${ran.out}`)
  return { ...ran, steps: Object.fromEntries(found) as Record<Name, Step> }
}
