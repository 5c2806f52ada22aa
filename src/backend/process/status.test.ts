import { describe, expect, test } from 'bun:test'
import { closeSync, writeSync } from 'node:fs'
import { pipe } from '../../base/kernel/descriptor.ts'
import { BwrapStatus } from './status.ts'

/** A status that has read these pieces, and then the end. */
function told(...pieces: string[]): BwrapStatus {
  const [read, write] = pipe()
  for (const piece of pieces) writeSync(write, piece)
  closeSync(write)
  return new BwrapStatus(read)
}

describe('what bubblewrap says', () => {
  test('the init and the exit code are found, in one piece or in many', () => {
    const whole = '{ "child-pid": 4711, "net-namespace": 4026532 }\n{ "exit-code": 3 }\n'
    for (const status of [told(whole), told(...whole)]) {
      expect(status.initPid()).toBe(4711)
      expect(status.exitCode()).toBe(3)
    }
  })
  test('an exit code of 0 is an exit code', () => expect(told('{"exit-code": 0}').exitCode()).toBe(0))
  test('no exit code means that the command never ran', () => {
    const status = told('{ "child-pid": 4711 }\n')
    expect(status.exitCode()).toBeUndefined()
    expect(status.initPid()).toBe(4711)
  })
  test('no output means that the sandbox never started', () => {
    expect(told().initPid()).toBeUndefined()
    expect(told().exitCode()).toBeUndefined()
  })
  test('the init is known while the command still runs, and reported once', () => {
    const [read, write] = pipe()
    writeSync(write, '{ "child-pid": 12 }\n')
    const inits: number[] = []
    const status = new BwrapStatus(read, pid => inits.push(pid))
    expect([status.initPid(), status.initPid()]).toEqual([12, 12])
    expect(inits).toEqual([12])
    closeSync(write)
    closeSync(read)
  })
  test('a truncated number is ignored', () => expect(told('{ "child-pid": 47').initPid()).toBeUndefined())
})
