/** Commands that a program reads while they run. */
import { expect } from 'bun:test'
import { claim, nothingLeft, OFFLINE } from './claim.ts'

claim('output is read as it comes, and input is written meanwhile', async (program, place) => {
  await program.ask('start', { project: place.project })
  const { pieces, result } = await program.ask('stream', {
    command: ['sh', '-c', 'echo ready; read a; echo "got $a"; read b; echo "got $b"; cat'],
    input: ['one\n', 'two\n'],
  })
  expect(pieces).toEqual([
    ['stdout', 'ready\n'],
    ['stdout', 'got one\n'],
    ['stdout', 'got two\n'],
  ])
  expect(result).toMatchObject({ exitCode: 0 })
  // Without a reader nothing waits and nothing is lost.
  const unread = { command: 'echo first; head -c 5000000 /dev/zero; echo err >&2; exit 4' }
  const lost = await program.ask('unread', unread)
  expect(lost).toMatchObject({ exitCode: 4, stderr: 'err\n', truncated: false })
  expect([lost.stdout.slice(0, 6), lost.stdout.length]).toEqual(['first\n', 5_000_006])
  expect(await program.ask('late', { command: 'echo one; sleep 0.1; echo two' })).toEqual({
    stdout: 'one\ntwo\n',
    read: 'one\ntwo\n',
  })
})

claim(
  'a timeout above the ceiling is refused, and a spawned command has none by default',
  async (program, place) => {
    await program.ask('start', { project: place.project })
    expect(await program.exec('sleep 100')).toMatchObject({ timedOut: true })
    expect(await program.exec('sleep 100', { timeout: 500 })).toMatchObject({ timedOut: true })
    const long = { command: 'true', options: { timeout: 50_000 } }
    for (const call of ['exec', 'unread'] as const)
      expect(await program.failure(call, long)).toMatchObject({
        code: 'USAGE',
        what: 'a timeout of 50000 ms is above exec.ceiling of the policy (600 ms)',
        hint: expect.any(String),
      })
    expect(await program.ask('unread', { command: 'sleep 1; echo on' })).toMatchObject({ stdout: 'on\n' })
    const short = { command: 'sleep 100', options: { timeout: 300 } }
    expect(await program.ask('unread', short)).toMatchObject({ timedOut: true, exitCode: 124 })
  },
  { ...OFFLINE, exec: { timeout: '300ms', ceiling: '600ms' } },
)

claim('a spawned command has the streams and events of a child process', async (program, place) => {
  await program.ask('start', { project: place.project })
  expect(await program.ask('child', { command: 'cat; echo err >&2; exit 3', input: 'typed' })).toEqual({
    stdout: 'typed',
    stderr: 'err\n',
    events: [
      ['exit', 3, null],
      ['close', 3, null],
    ],
  })
  expect(await program.ask('child', { command: 'exec sleep 100', kill: 'SIGTERM' })).toMatchObject({
    events: [
      ['exit', null, 'SIGTERM'],
      ['close', null, 'SIGTERM'],
    ],
  })
  // 30 MB at the pace of a slow reader: nothing is lost, and nothing is buffered in memory.
  expect(await program.ask('slow', { command: 'head -c 30000000 /dev/zero' })).toBe(30_000_000)
  await nothingLeft(program)
})
