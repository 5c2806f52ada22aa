import { expect, test } from 'bun:test'
import { runSession, shownSession } from '../../scripts/readme-session.ts'

test('the session in README.md is what a real run prints: else run `npm run readme`', () => {
  expect(shownSession()).not.toBe('')
  expect(runSession()).toBe(shownSession())
})
