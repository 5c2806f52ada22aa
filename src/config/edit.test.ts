import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { HostPath } from '../policy/files/path.ts'
import { editLiveConfig, editNetworkList } from './edit.ts'
import { locate } from './locate.ts'
import { withLock } from './lock.ts'
import type { Project } from './project.ts'

let dir: string
let project: Project
let file: string

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'pen-edit-'))
  mkdirSync(`${dir}/home/work`, { recursive: true })
  const home = `${dir}/home` as HostPath
  const state = `${home}/.pen` as HostPath
  const shared = { id: 'work-1', stateDir: `${state}/sandboxes/work-1` as HostPath }
  project = {
    ...shared,
    name: undefined,
    shared,
    cwd: `${home}/work` as HostPath,
    world: { workspace: `${home}/work` as HostPath, home, state, locate },
  }
  file = `${project.stateDir}/config.json`
})

afterEach(() => rmSync(dir, { recursive: true, force: true }))

const add = (text: string) =>
  editLiveConfig(project, config => editNetworkList(config, 'http', list => [...list, text]))

describe('an edit of the live config', () => {
  test('makes a config that only the user can read', async () => {
    expect(await add('a.example.com:443')).toBe(true)
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      version: 1,
      network: { http: ['a.example.com:443'] },
    })
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(statSync(project.stateDir).mode & 0o777).toBe(0o700)
  })

  test('keeps the config before it', async () => {
    await add('a.example.com:443')
    const before = readFileSync(file, 'utf8')
    await add('b.example.com:443')
    expect(readFileSync(`${file}.before`, 'utf8')).toBe(before)
  })

  test('that would not validate leaves the file as it was', async () => {
    await add('a.example.com:443')
    const before = readFileSync(file, 'utf8')
    expect(add('https://b.example.com/')).rejects.toThrow('not a URL')
    expect(readFileSync(file, 'utf8')).toBe(before)
    expect(existsSync(`${file}.lock`)).toBe(false)
  })

  test('of a broken file is refused, and the file is left as it was', async () => {
    mkdirSync(project.stateDir, { recursive: true, mode: 0o700 })
    writeFileSync(file, '{ "version": 1, }', { mode: 0o600 })
    expect(add('a.example.com:443')).rejects.toThrow()
    expect(readFileSync(file, 'utf8')).toBe('{ "version": 1, }')
  })

  test('that changes nothing writes nothing', async () => {
    await add('a.example.com:443')
    expect(await editLiveConfig(project, config => config)).toBe(false)
    expect(existsSync(`${file}.before`)).toBe(false)
  })

  test('leaves an emptied list out, because [] would remove what the profile grants', async () => {
    await add('a.example.com:443')
    await editLiveConfig(project, config => editNetworkList(config, 'http', () => []))
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({ version: 1, network: {} })
  })

  test('takes up what an editor saves in the same moment, instead of writing over it', async () => {
    await add('a.example.com:443')
    let saved = false
    await editLiveConfig(project, config => {
      if (!saved) writeFileSync(file, '{"version":1,"limits":{"pids":7}}', { mode: 0o600 })
      saved = true
      return editNetworkList(config, 'http', list => [...list, 'b.example.com:443'])
    })
    expect(JSON.parse(readFileSync(file, 'utf8'))).toEqual({
      version: 1,
      limits: { pids: 7 },
      network: { http: ['b.example.com:443'] },
    })
  })

  test('gives up when the file changes all the time, and leaves it as it is', async () => {
    await add('a.example.com:443')
    let n = 0
    const edit = editLiveConfig(project, config => {
      writeFileSync(file, `{"version":1,"limits":{"pids":${++n}}}`)
      return editNetworkList(config, 'http', list => [...list, 'b.example.com:443'])
    })
    expect(edit).rejects.toThrow('keeps changing')
    expect(readFileSync(file, 'utf8')).toBe('{"version":1,"limits":{"pids":10}}')
  })

  test('clears away what a killed one left, and nothing else', async () => {
    await add('a.example.com:443')
    const uuid = crypto.randomUUID()
    for (const name of [
      `.config.json.${uuid}.tmp`,
      `.config.json.before.${uuid}.tmp`,
      '.config.json.swp',
      `.other.${uuid}.tmp`,
    ])
      writeFileSync(`${project.stateDir}/${name}`, '')
    await add('b.example.com:443')
    expect(readdirSync(project.stateDir).sort()).toEqual([
      '.config.json.swp',
      `.other.${uuid}.tmp`,
      'config.json',
      'config.json.before',
    ])
  })

  test('loses nothing when twenty come at once', async () => {
    const hosts = Array.from({ length: 20 }, (_, i) => `h${i}.example.com:443`)
    await Promise.all(hosts.map(add))
    const kept: string[] = JSON.parse(readFileSync(file, 'utf8')).network.http
    expect(new Set(kept)).toEqual(new Set(hosts))
  })
})

describe('the lock', () => {
  test('of a dead pen is free: its file is reused, whatever it contains', async () => {
    writeFileSync(`${dir}/x.lock`, String(process.pid))
    expect(await withLock(`${dir}/x`, () => 'done')).toBe('done')
    expect(existsSync(`${dir}/x.lock`)).toBe(false)
  })

  test('of a living pen is waited for', async () => {
    const lock = join(import.meta.dir, 'lock.ts')
    const script = `const { withLock } = await import(${JSON.stringify(lock)})
      await withLock(${JSON.stringify(`${dir}/x`)}, () => { console.log('held'); Bun.sleepSync(150) })`
    const other = Bun.spawn([process.execPath, '-e', script], { stdout: 'pipe' })
    await other.stdout.getReader().read()
    const began = performance.now()
    await withLock(`${dir}/x`, () => undefined)
    expect(performance.now() - began).toBeGreaterThan(100)
    await other.exited
  })

  test('is given back when the work throws', async () => {
    expect(withLock(`${dir}/x`, () => JSON.parse('{'))).rejects.toThrow()
    expect(await withLock(`${dir}/x`, () => 'done')).toBe('done')
  })

  test('that cannot be taken is an error with a fix', async () => {
    expect(withLock(`${dir}/absent/x`, () => undefined)).rejects.toThrow('could not be taken (ENOENT)')
  })
})

describe('the form of the file', () => {
  test.each(['  ', '    ', '\t'])('is kept by an edit: indented with %j', async indent => {
    mkdirSync(project.stateDir, { recursive: true })
    writeFileSync(file, `${JSON.stringify({ version: 1, limits: { pids: 9 } }, undefined, indent)}\n`, {
      mode: 0o600,
    })
    await editLiveConfig(project, config => ({ ...config, user: 'host' }))
    expect(readFileSync(file, 'utf8')).toBe(
      `${JSON.stringify({ version: 1, limits: { pids: 9 }, user: 'host' }, undefined, indent)}\n`,
    )
  })

  test('is left alone by an edit that changes nothing', async () => {
    mkdirSync(project.stateDir, { recursive: true })
    writeFileSync(file, '{"version":1 }', { mode: 0o600 })
    expect(await editLiveConfig(project, config => config)).toBe(false)
    expect(readFileSync(file, 'utf8')).toBe('{"version":1 }')
  })
})
