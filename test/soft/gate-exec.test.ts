/** What a program may use up through the gate, and how it ends. */
import { describe, expect, test } from 'bun:test'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type GateBox, gateBox } from './gate-box.ts'

const SHELL = { tools: { shell: true, allow: ['sh'] } }
const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString()
const sh = (box: GateBox, script: string, options = {}) => box.gate.exec(['sh', '-c', script], options)

const isAlive = (pid: string): boolean => {
  try {
    return !/^State:\s+[ZX]/m.test(readFileSync(`/proc/${pid.trim()}/status`, 'latin1'))
  } catch {
    return false
  }
}

async function gone(file: string): Promise<boolean> {
  const pid = readFileSync(file, 'utf8')
  expect(Number(pid)).toBeGreaterThan(1)
  const late = performance.now() + 3000
  while (isAlive(pid) && performance.now() < late) await Bun.sleep(5)
  return !isAlive(pid)
}

describe('a program that takes too long', () => {
  test('ends with everything that it left: what forked twice, and what began a session of its own', async () => {
    using box = await gateBox(SHELL)
    const at = (name: string) => join(box.project.workspace, name)
    const script =
      '( ( sleep 300 & echo $! > forked ) & ) ; setsid sh -c "trap \\"\\" TERM; echo \\$\\$ > own; sleep 300" & while [ ! -s forked ] || [ ! -s own ]; do :; done; echo partial; trap "" TERM; sleep 300'
    const began = performance.now()
    const done = await sh(box, script, { timeout: 3000 })
    expect(performance.now() - began).toBeLessThan(7000)
    expect(done).toMatchObject({ exitCode: 124, timedOut: true, survivors: 0 })
    expect(text(done.stdout)).toBe('partial\n')
    expect([await gone(at('forked')), await gone(at('own'))]).toEqual([true, true])
    expect(box.of('tool-ended')).toMatchObject([{ timedOut: true, exitCode: 124, survivors: 0 }])
  })

  test('has the policy’s time when it asks for none, and the policy’s ceiling when it asks for more', async () => {
    using box = await gateBox({ ...SHELL, exec: { timeout: '2s', ceiling: '3s' } })
    expect((await sh(box, 'sleep 20')).timedOut).toBe(true)
    const began = performance.now()
    expect((await sh(box, 'sleep 20', { timeout: 60_000 })).timedOut).toBe(true)
    expect(performance.now() - began).toBeLessThan(7000)
    expect(await sh(box, 'exit 3')).toMatchObject({ exitCode: 3, timedOut: false })
  })

  test('is ended when whoever asked no longer wants it', async () => {
    using box = await gateBox(SHELL)
    const abort = new AbortController()
    setTimeout(() => abort.abort(), 200)
    expect(await sh(box, 'sleep 60', { signal: abort.signal })).toMatchObject({
      exitCode: 137,
      timedOut: false,
    })
  })
})

describe('a program that ends', () => {
  test('takes with it what it left in the background', async () => {
    using box = await gateBox(SHELL)
    const done = await sh(box, 'setsid sleep 300 & echo $! > left; echo out')
    expect([done.exitCode, text(done.stdout)]).toEqual([0, 'out\n'])
    expect(await gone(join(box.project.workspace, 'left'))).toBe(true)
  })

  test('by a signal is told as a shell tells it', async () => {
    using box = await gateBox(SHELL)
    expect((await sh(box, 'kill -SEGV $$')).exitCode).toBe(139)
  })
})

describe('bounds', () => {
  test('cut output and say so, while the program goes on', async () => {
    using box = await gateBox({ ...SHELL, exec: { maxOutput: '64KiB' } })
    const done = await sh(box, 'head -c 5000000 /dev/zero; echo end > after', { maxOutput: 1e9 })
    expect([done.exitCode, done.stdout.length + done.stderr.length, done.truncated]).toEqual([
      0,
      65_536,
      true,
    ])
    expect(existsSync(join(box.project.workspace, 'after'))).toBe(true)
    expect(await sh(box, 'head -c 100 /dev/zero')).toMatchObject({ truncated: false })
  })

  test('hold on open files, size of files, processor time and cores, and privileges cannot be gained', async () => {
    using box = await gateBox({ ...SHELL, limits: { files: 123, disk: '1MiB' } })
    const { stdout } = await sh(
      box,
      'ulimit -n; ulimit -f; ulimit -c; ulimit -t; grep NoNewPrivs /proc/self/status',
      {
        timeout: 9000,
      },
    )
    expect(text(stdout).split(/\s+/)).toEqual(['123', '2048', '0', '19', 'NoNewPrivs:', '1', ''])
    const { exitCode } = await sh(box, 'head -c 2000000 /dev/zero > big')
    expect(exitCode).not.toBe(0)
    expect(readFileSync(join(box.project.workspace, 'big')).length).toBe(1_048_576)
  })

  test('no descriptor but the three crosses', async () => {
    using box = await gateBox(SHELL)
    writeFileSync(join(box.project.root, 'held'), '')
    const { stdout } = await sh(box, 'ls /proc/self/fd')
    expect(text(stdout).trim().split('\n').slice(0, 3)).toEqual(['0', '1', '2'])
    expect(text(stdout).trim().split('\n').length).toBe(4)
  })

  test('refuse a directory outside, and a variable with a bad name', async () => {
    using box = await gateBox(SHELL)
    expect(sh(box, 'pwd', { cwd: '/tmp' })).rejects.toMatchObject({ reason: 'not-granted' })
    expect(sh(box, 'pwd', { env: { 'A=B': '1' } })).rejects.toThrow('bad name')
    expect(text((await sh(box, 'pwd')).stdout).trim()).toBe(box.project.workspace)
  })
})
