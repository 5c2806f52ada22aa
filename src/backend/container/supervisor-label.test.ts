import { describe, expect, test } from 'bun:test'
import { isOrphan, supervisorLabel } from './supervisor-label.ts'

const own = supervisorLabel()
const [pid = '', start = '', namespace = '', user = ''] = own.split(':')
const DEAD = '4194304:1'

describe('a container is an orphan', () => {
  test('when its supervisor is dead, and not while it lives', () => {
    expect(isOrphan(own)).toBe(false)
    expect(isOrphan(`${DEAD}:${namespace}:${user}`)).toBe(true)
    // Another process has the pid now.
    expect(isOrphan(`${pid}:${Number(start) - 1}:${namespace}:${user}`)).toBe(true)
  })

  test('only when this pen can see its supervisor', () => {
    expect(isOrphan(`${DEAD}:${Number(namespace) + 1}:${user}`)).toBe(false)
    expect(isOrphan(`${DEAD}:${namespace}:${Number(user) + 1}`)).toBe(user === '0')
  })

  test.each(['', '<no value>', DEAD, `${DEAD}:${namespace}`, `x${DEAD}:${namespace}:${user}`])(
    'but not for the label %j, which is not a supervisor’s',
    label => expect(isOrphan(label)).toBe(false),
  )
})
