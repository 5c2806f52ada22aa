import { expect, test } from 'bun:test'
import { PlaceReport } from './report.ts'

test('twenty things that could not be moved are named, and the rest is counted; so are twenty that were moved', () => {
  const lines: string[] = []
  const report = new PlaceReport(line => lines.push(line))
  for (let i = 0; i < 500; i++) {
    report.event({ kind: 'stuck', path: `/p/s${i}`, why: 'EXDEV', aside: `/p/a${i}` })
    report.event({
      kind: 'moved',
      path: `/p/m${i}`,
      to: '/q',
      what: 'file',
      restored: false,
      mayBeUsers: false,
    })
  }
  report.finish()
  expect(lines).toHaveLength(42)
  expect(lines.join('\n')).toContain('… and 480 more that could not be moved: look for .pen-quarantine-*')
  expect(lines[0]).toContain('/p/a0, then remove it')
})
