import { describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryProject, withHome } from '../../test/temporary-project.ts'
import { plain } from '../cli/render/colour.ts'
import { doctorText } from '../cli/verbs/maintenance/doctor.ts'
import { judge } from './door.ts'
import { examine } from './examine.ts'
import { fails, type Machine, ok, weak } from './finding.ts'
import { checkKernel, checkLandlock } from './kernel.ts'
import { describe as describeLimits } from './limits.ts'
import { errorIn, judgeStatus } from './sandbox.ts'

const quiet = { env: {}, onCheck: () => undefined }

describe('an examination', () => {
  test('continues after a check that throws or hangs, and reports both as failures', async () => {
    using project = temporaryProject()
    const { findings } = await withHome(project.home, () =>
      examine({
        ...quiet,
        checkLimitMs: 50,
        checks: [
          { id: 'throws', name: 'one that throws', run: () => Promise.reject(new Error('broken')) },
          { id: 'hangs', name: 'one that hangs', run: () => new Promise(() => undefined) },
          { id: 'works', name: 'one that works', run: () => [ok('fine'), { id: 'own', ...ok('fine') }] },
        ],
      }),
    )
    expect(findings.map(({ id, status }) => `${id} ${status}`)).toEqual([
      'throws fails',
      'hangs fails',
      'works ok',
      'own ok',
    ])
    expect(findings[0]?.why).toBe('broken')
  })

  test('gives its checks a temporary directory, and removes it', async () => {
    using project = temporaryProject()
    let seen: Machine | undefined
    const look = {
      id: 'look',
      name: 'look',
      run: (machine: Machine) => {
        seen = machine
        writeFileSync(join(machine.scratch ?? '', 'file'), '')
        return []
      },
    }
    await withHome(project.home, () => examine({ ...quiet, checks: [look] }))
    expect(seen?.scratch?.startsWith(`${project.home}/.pen-${process.pid}-`)).toBe(true)
    expect(existsSync(seen?.scratch ?? '')).toBe(false)
    expect(readdirSync(project.home)).toEqual(['project'])
  })

  test('removes the directory of a killed doctor, and keeps that of a running one', async () => {
    using project = temporaryProject()
    const dead = join(project.home, '.pen-4194305-1-doctor')
    const others = ['.pen-x-1-doctor', '.pen-4194305-1-other', 'pen-4194305-1-doctor']
    for (const path of [dead, ...others.map(name => join(project.home, name))]) mkdirSync(path)
    await withHome(project.home, () => examine({ ...quiet, checks: [] }))
    expect(readdirSync(project.home).sort()).toEqual([...others, 'project'].sort())
  })
})

describe('the reason', () => {
  test('escapes hostile text, and ends with whether pen run works', () => {
    const text = doctorText(
      [
        { id: 'a', ...ok('x\u001b[2J') },
        { id: 'b', ...weak('y', 'w\nz', 'c') },
      ],
      true,
      plain,
    )
    expect(text).toBe(
      'ok     a: x\\u001b[2J\nweak   b: y\n       w\\u000az\n       fix: c\n\npen run works here: 1 ok, 1 weak, 0 failed',
    )
    expect(doctorText([{ id: 'a', ...fails('x') }], false, plain)).toContain('pen run does not work here')
  })

  test('of a failed run is its error, or its last line', () => {
    expect(errorIn('bwrap: no\n{"error":{"code":"GAP","what":"w","at":null,"hint":"h"}}\n')).toEqual({
      what: 'w',
      hint: 'h',
    })
    expect(errorIn('one\ntwo\n')).toEqual({ what: 'two', hint: undefined })
  })

  test('of the command’s status is whether it was filtered and without privileges', () => {
    const status = (seccomp: number, caps: string, no = 1) =>
      ['CapInh', 'CapPrm', 'CapEff', 'CapBnd', 'CapAmb']
        .map(name => `${name}:\t${caps}\n`)
        .join('')
        .concat(`NoNewPrivs:\t${no}\nSeccomp:\t${seccomp}\n`)
    const none = '0000000000000000'
    const said = (text: string) => judgeStatus(text).map(({ status: one }) => one)
    expect(said(status(2, none))).toEqual(['ok', 'ok'])
    expect(said(status(0, none))).toEqual(['fails', 'ok'])
    expect(said(status(2, '0000000000000001'))).toEqual(['ok', 'fails'])
    expect(said(status(2, none, 0))).toEqual(['ok', 'fails'])
    expect(said('')).toEqual(['fails', 'fails'])
  })
})

test('a door is ok only with a DNS answer, a 403 and an audit record', () => {
  const record = { kind: 'connection-denied', name: 'doctor.example', port: 443 } as never
  const told = { address: '198.18.0.1', response: 'HTTP/1.1 403 Forbidden' }
  expect(judge(told, [record], true).status).toBe('ok')
  expect(judge(told, [], true).why).toBe('the refusal was not recorded')
  expect(judge({ ...told, response: '' }, [record], true).status).toBe('fails')
  expect(judge({ address: undefined, response: '' }, [], true).why).toContain('did not answer')
})

test('limits are weak when memory, processors or processes are only watched', () => {
  const files = { files: 'kernel', disk: 'watchdog', output: 'watchdog', wall: 'watchdog' } as const
  const held = { memory: 'kernel', cpus: 'kernel', pids: 'kernel', ...files } as const
  expect(describeLimits('cgroup-v2', held).status).toBe('ok')
  const watched = describeLimits('watchdog', { ...held, memory: 'watchdog' })
  expect([watched.status, watched.what.includes('pen checks memory')]).toEqual(['weak', true])
})

test('an old kernel is weak, another system fails, and Landlock may be absent', () => {
  expect(checkKernel('6.1.0', 'linux').status).toBe('ok')
  expect(checkKernel('5.10.0-30', 'linux').status).toBe('weak')
  expect(checkKernel('23.1', 'darwin').status).toBe('fails')
  expect(checkLandlock(0).status).toBe('weak')
  expect(checkLandlock(3).status).toBe('ok')
})
