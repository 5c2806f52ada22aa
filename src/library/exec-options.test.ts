import { describe, expect, test } from 'bun:test'
import { orderOf, pathInside, timeoutOf } from './exec-options.ts'
import { SandboxError } from './sandbox-error.ts'

describe('a command', () => {
  test('as an array bypasses the shell, and a string goes to the shell', () => {
    expect(orderOf(['echo', '$HOME; x'], {}, '/w').argv).toEqual(['echo', '$HOME; x'])
    expect(orderOf('echo $HOME', {}, '/w').argv).toEqual(['/bin/sh', '-c', 'echo $HOME'])
  })

  test('runs in the project or below it, with the given variables', () => {
    expect(orderOf(['x'], { cwd: 'a/../b', env: { A: '1', B: undefined } }, '/w')).toMatchObject({
      cwd: '/w/b',
      env: [{ name: 'A', value: '1' }],
    })
    expect(pathInside('/etc', '/w')).toBe('/etc')
  })

  test.each([
    [[], {}],
    [[''], {}],
    [['a\0b'], {}],
    // From programs without types, and from models.
    [['a', 1 as unknown as string], {}],
    [['a'], { env: { A: 1 as unknown as string } }],
    [['a'], { env: { 'A=B': '1' } }],
    [['a'], { env: { A: 'x\0y' } }],
    [['a'], { cwd: 'x\0y' }],
    [['a'], { cwd: 'ä'.repeat(2100) }],
    [['a', 'x'.repeat(2 ** 20)], {}],
  ] as const)('that is invalid is refused before anything is sent: %j %j', (command, options) => {
    expect(() => orderOf(command, options, '/w')).toThrow(SandboxError)
  })

  test('has the given timeout or the default; 0 and NaN are refused', () => {
    expect(timeoutOf(undefined, 120_000)).toBe(120_000)
    expect(timeoutOf(1.5, 120_000)).toBe(2)
    expect(timeoutOf(Number.POSITIVE_INFINITY, 1)).toBe(2 ** 31 - 1)
    for (const none of [0, -1, Number.NaN]) expect(() => timeoutOf(none, 1)).toThrow(SandboxError)
  })
})
