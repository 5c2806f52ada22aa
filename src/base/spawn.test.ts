import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { Stopwatch } from '../../test/stopwatch.ts'
import { PenError } from './error.ts'
import { type CaptureOptions, capture } from './spawn.ts'

const run = (argv: readonly string[], options: Partial<CaptureOptions> = {}) =>
  capture(argv, { env: {}, timeoutMs: 5000, ...options })
const sh = (script: string, options: Partial<CaptureOptions> = {}) => run(['/bin/sh', '-c', script], options)

async function refused(argv: readonly string[], options: Partial<CaptureOptions> = {}): Promise<PenError> {
  const error = await run(argv, options).then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (error instanceof PenError) return error
  throw new Error('expected a refusal')
}

describe('capture', () => {
  test('returns output, error output and exit code', async () => {
    expect(await sh('echo out; echo err >&2; exit 3')).toEqual({
      code: 3,
      signal: null,
      stdout: 'out\n',
      stderr: 'err\n',
      ended: 'exit',
    })
  })

  test('the exit code is known also in a program that was started with SIGCHLD ignored', async () => {
    const ignoring = `import os, signal, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
os.execv(sys.argv[1], sys.argv[1:])`
    const asking = `import { capture } from ${JSON.stringify(join(import.meta.dir, 'spawn.ts'))}
const { code } = await capture(['/bin/sh', '-c', 'exit 3'], { env: {}, timeoutMs: 5000 })
console.log(code)`
    const program = [process.execPath, '-e', asking]
    for (const before of [[], ['/usr/bin/python3', '-c', ignoring]])
      expect(await run([...before, ...program], { timeoutMs: 20_000 })).toMatchObject({
        stdout: '3\n',
        code: 0,
      })
  })

  test('a signal that ended the program is named', async () => {
    expect(await sh('kill -TERM $$')).toMatchObject({ code: null, signal: 'SIGTERM', ended: 'exit' })
  })

  test('the environment is exactly what was given', async () => {
    process.env['PEN_TEST_SECRET'] = 'canary'
    try {
      expect((await run(['/usr/bin/env'])).stdout).toBe('')
      expect((await run(['/usr/bin/env'], { env: { LANG: 'C' } })).stdout).toBe('LANG=C\n')
    } finally {
      delete process.env['PEN_TEST_SECRET']
    }
  })

  test('no descriptor above 2 crosses', async () => {
    const seen = await sh(
      'for fd in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do [ -e /proc/self/fd/$fd ] && echo $fd; done',
    )
    expect(seen.stdout).toBe('0\n1\n2\n')
  })

  test('stdin is empty, or holds the input', async () => {
    expect((await run(['/bin/cat'])).stdout).toBe('')
    expect((await run(['/bin/cat'], { input: 'hello' })).stdout).toBe('hello')
    expect((await run(['/bin/true'], { input: 'x'.repeat(1_000_000) })).code).toBe(0)
  })

  test('input that never comes is empty, and input that is not read blocks nothing', async () => {
    const never = Promise.reject(new Error('it never came'))
    expect((await run(['/bin/cat'], { input: never })).ended).toBe('exit')
    const much = 'x'.repeat(4 << 20)
    expect(await sh('exec <&-; echo done', { input: much })).toMatchObject({ code: 0, stdout: 'done\n' })
    expect((await run(['/usr/bin/wc', '-c'], { input: much })).stdout.trim()).toBe(String(much.length))
  })

  test('output of a child that outlives the program is dropped, and never exceeds the bound', async () => {
    const { code, stdout, ended } = await sh('yes & exit 4', { maxOutput: 100_000 })
    expect([stdout.length <= 100_000, ended === 'output' ? code === null : code === 4]).toEqual([true, true])
  })

  test('arguments arrive as they are, with no shell between', async () => {
    const words = ['$HOME', 'a b', '*', ';true', '-n', '']
    expect((await run(['/usr/bin/printf', '<%s>', ...words])).stdout).toBe(words.map(w => `<${w}>`).join(''))
  })

  test('a program that takes too long is killed, also when its child holds the output', async () => {
    const watch = new Stopwatch()
    const result = await sh('sleep 3 & trap "" TERM; sleep 3', { timeoutMs: 100 })
    expect(result).toMatchObject({ code: null, signal: 'SIGKILL', ended: 'timeout' })
    expect(watch.ms).toBeLessThan(1500)
  })

  test('a background child does not keep a finished program waiting', async () => {
    const watch = new Stopwatch()
    expect(await sh('echo done; sleep 3 &')).toMatchObject({ code: 0, stdout: 'done\n', ended: 'exit' })
    expect(watch.ms).toBeLessThan(1500)
  })

  test('too much output stops the program and is not success', async () => {
    const result = await sh('while :; do echo y; done', { maxOutput: 1000 })
    expect(result).toMatchObject({ code: null, ended: 'output' })
    expect(result.stdout.length).toBe(1000)
    expect((await sh('printf 1234567890', { maxOutput: 10 })).ended).toBe('exit')
  })

  test('large output arrives whole', async () => {
    expect((await sh('head -c 3000000 /dev/zero')).stdout.length).toBe(3_000_000)
  })

  test('a program is named by its absolute path only', async () => {
    for (const argv of [['true'], ['./true'], ['node_modules/.bin/bwrap'], [''], []])
      expect((await refused(argv)).code).toBe('INTERNAL')
    expect((await run(['/bin/true'])).code).toBe(0)
  })

  test('a missing or unexecutable program, a missing directory and a NUL byte fail with a code', async () => {
    expect((await refused(['/nonexistent/tool'])).code).toBe('MISSING_TOOL')
    expect((await refused(['/etc/passwd'])).hint).toBe('make it executable')
    expect((await refused(['/bin/true'], { cwd: '/nonexistent' })).code).toBe('MISSING_TOOL')
    expect((await refused(['/bin/echo', 'a\0b'])).code).toBe('INTERNAL')
  })
})
