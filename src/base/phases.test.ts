import { expect, test } from 'bun:test'
import { phase, showPhases } from './phases.ts'

test('a phase is printed with the time since the start and since the phase before', () => {
  const lines: string[] = []
  showPhases(line => lines.push(line))
  phase('policy loaded')
  phase('plan built')
  expect(lines.map(line => line.replaceAll(/ *\d+\.\d ms/g, ' T'))).toEqual([
    'debug: T  + T  policy loaded',
    'debug: T  + T  plan built',
  ])
})
