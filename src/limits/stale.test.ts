import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { onlyWhen } from '../../test/skip.ts'
import { isAlive, startTimeOf } from '../base/kernel/processes.ts'
import { cgroupName, ownerOf } from './cgroup-name.ts'
import { findLimitSupport } from './probe.ts'
import { sweepAndRemember } from './stale.ts'

/** `rmdir` removes an empty cgroup, so plain directories can stand in for cgroups here. */
let base = ''
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'pen-stale-'))
  mkdirSync(`${base}/slice`)
})
afterEach(() => rmSync(base, { recursive: true, force: true }))

const DEAD = `pen-${process.pid}-1-run`
const sweep = (...places: string[]): void => sweepAndRemember(`${base}/state/places`, places)

describe('names of cgroups', () => {
  test('say which process made them', () => {
    expect(ownerOf(cgroupName('web/app 1'))).toEqual({
      pid: process.pid,
      startTime: startTimeOf(process.pid) ?? '',
    })
    expect(cgroupName('web/app 1')).toEndWith('-web-app-1')
  })

  test('of a reused pid are dead', () => {
    expect(isAlive({ pid: process.pid, startTime: '1' })).toBe(false)
    expect(isAlive({ pid: process.pid, startTime: startTimeOf(process.pid) ?? '' })).toBe(true)
  })

  test('that are not pen’s have no owner', () => {
    for (const name of ['user.slice', 'pen-1', 'pen-1-2', 'pen-x-2-run', 'open-1-2-run', 'pen-1-2-a/b'])
      expect(ownerOf(name)).toBeUndefined()
  })
})

describe('the sweep', () => {
  test('removes what a dead pen left, and nothing else', () => {
    const alive = cgroupName('run')
    for (const name of [DEAD, alive, 'user.slice']) mkdirSync(`${base}/slice/${name}`)
    sweep(`${base}/slice`)
    expect(readdirSync(`${base}/slice`).sort()).toEqual([alive, 'user.slice'].sort())
  })

  test('leaves what is still in use to the next one', () => {
    mkdirSync(`${base}/slice/${DEAD}/process`, { recursive: true })
    sweep(`${base}/slice`)
    expect(existsSync(`${base}/slice/${DEAD}`)).toBe(true)
    rmSync(`${base}/slice/${DEAD}/process`, { recursive: true })
    sweep(`${base}/slice`)
    expect(existsSync(`${base}/slice/${DEAD}`)).toBe(false)
  })

  test('finds what was left in another login’s cgroup', () => {
    sweep(`${base}/slice`)
    mkdirSync(`${base}/slice/${DEAD}`)
    sweep()
    expect(readdirSync(`${base}/slice`)).toEqual([])
  })

  test('records a parent once, and drops one that is gone', () => {
    sweep(`${base}/slice`)
    sweep(`${base}/slice`)
    expect(readFileSync(`${base}/state/places`, 'utf8')).toBe(`${base}/slice\n`)
    rmSync(`${base}/slice`, { recursive: true })
    mkdirSync(`${base}/other`)
    sweep(`${base}/other`)
    expect(readFileSync(`${base}/state/places`, 'utf8')).toBe(`${base}/other\n`)
  })

  test('records every existing parent, however many', () => {
    const places = Array.from({ length: 70 }, (_, i) => `${base}/many/${i}`)
    for (const place of places) mkdirSync(place, { recursive: true })
    sweep(...places)
    rmSync(`${base}/many/69`, { recursive: true })
    sweep(`${base}/slice`)
    mkdirSync(`${base}/many/0/${DEAD}`)
    sweep()
    expect(readdirSync(`${base}/many/0`)).toEqual([])
  })

  const { mechanism } = findLimitSupport()
  onlyWhen(mechanism.how === 'cgroup-v1')('works on the real thing', () => {
    const place = mechanism.how === 'cgroup-v1' ? (mechanism.parents.get('pids') ?? '') : ''
    mkdirSync(`${place}/${DEAD}`)
    sweep(place)
    expect(existsSync(`${place}/${DEAD}`)).toBe(false)
  })
})
