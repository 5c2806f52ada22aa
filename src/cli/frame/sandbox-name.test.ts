import { expect, test } from 'bun:test'
import { PenError } from '../../base/error.ts'
import { errorWithName, takesName, withName } from './sandbox-name.ts'
import { VERBS } from './verbs.ts'

test('every verb that the table names exists, and has the flag', async () => {
  const named: string[] = []
  for (const [name, load] of Object.entries(VERBS)) {
    const { verb } = await load()
    if (takesName(name)) named.push(name)
    expect([name, Object.hasOwn(verb.flags, 'name')]).toEqual([name, takesName(name)])
  }
  expect(named).toContain('git import')
  expect(named).not.toContain('allow')
})

test('commands in a text get the name where the verb takes it, once', () => {
  const text = 'pen stop; then pen start --offline, pen allow a.test, pen git status, pen exec --name b -- x'
  expect(withName(text, 'a')).toBe(
    'pen stop --name a; then pen start --name a --offline, pen allow a.test, pen git status --name a, pen exec --name b -- x',
  )
  expect(withName(text, undefined)).toBe(text)
  const error = errorWithName(new PenError('STATE', { what: 'no', at: 'here', hint: 'pen start' }), 'a')
  expect(error).toMatchObject({ code: 'STATE', message: 'no', at: 'here', hint: 'pen start --name a' })
})
