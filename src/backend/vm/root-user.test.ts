import { expect, test } from 'bun:test'
import type { Plan, Step } from '../../plan/plan.ts'
import { grantedPlaces, withHostPackages } from './root-user.ts'

const bind = (at: string, why: string): Step => ({ op: 'bind', from: at, at, mode: 'rw', why }) as Step
const plan = (...steps: Step[]): Plan =>
  ({ workspace: '/home/u/project', steps: [...steps, { op: 'seal', at: '/' }], env: [] }) as unknown as Plan

test('only grants outside the project stay the host’s own, each once', () => {
  const places = ['/home/u/project', '/home/u/project/.git', '/data', '/data/below', '/database']
  const steps = [bind('/usr', 'system'), ...places.map(at => bind(at, 'granted by a test'))]
  expect(grantedPlaces(plan(...steps)) as readonly string[]).toEqual(['/data', '/database'])
})

test('a root of the guest sees the accounts of packages, and no person or member of a group', () => {
  const file = (at: string, text: string): Step => ({ op: 'file', at, text }) as Step
  const { steps } = withHostPackages(
    plan(file('/etc/passwd', 'agent:x:1000:1000::/h:/bin/sh\n'), file('/etc/group', 'agent:x:1000:\n')),
  )
  const texts = steps.flatMap(step => (step.op === 'file' ? step.text.trim().split('\n') : []))
  const fields = texts.map(line => line.split(':'))
  const people = fields.filter(([name, , id]) => name !== 'agent' && Number(id) >= 1000 && id !== '65534')
  expect(people).toEqual([])
  expect(texts.some(line => line.startsWith('root:x:0:0:'))).toBe(true)
  expect(fields.filter(({ length }) => length === 4).every(([, , , members]) => members === '')).toBe(true)
})
