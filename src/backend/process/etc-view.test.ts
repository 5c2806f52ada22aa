import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Step } from '../../plan/plan.ts'
import { type BindStep, type EtcStep, etcView, isEtcStep } from './etc-view.ts'

let root: string
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'pen-etc-'))
  mkdirSync(join(root, 'ssl'))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const host = (path: string, text: string, mode = 0o644) => {
  writeFileSync(join(root, path), text)
  chmodSync(join(root, path), mode)
}
const step = (from: string, at: string, why = 'system') =>
  ({ op: 'bind', from: join(root, from), at, mode: 'ro', why }) as unknown as EtcStep
const file = (at: string, text: string) => ({ op: 'file', at, text }) as unknown as EtcStep
const view = (...steps: EtcStep[]) => etcView(steps, join(root, 'cache'))

describe('the sandbox’s /etc', () => {
  test('has pen’s own texts and copies of the system’s files, links as links', () => {
    host('ssl/cert.pem', 'CERT')
    symlinkSync('/etc/shadow', join(root, 'ssl/link'))
    const made = view(step('ssl', '/etc/ssl'), file('/etc/hosts', 'HOSTS'))
    expect(readFileSync(join(made, 'ssl/cert.pem'), 'utf8')).toBe('CERT')
    expect(readlinkSync(join(made, 'ssl/link'))).toBe('/etc/shadow')
    expect(readFileSync(join(made, 'hosts'), 'utf8')).toBe('HOSTS')
  })
  test('has only files that every user of the host may read, also when root runs pen', () => {
    host('ssl/public', 'x')
    host('ssl/private', 'KEY', 0o600)
    mkdirSync(join(root, 'ssl/keys'))
    host('ssl/keys/a', 'KEY')
    chmodSync(join(root, 'ssl/keys'), 0o700)
    const made = view(step('ssl', '/etc/ssl'))
    expect(readdirSync(join(made, 'ssl'))).toEqual(['public'])
  })
  test('has a long file in full', () => {
    host('ssl/long', '')
    truncateSync(join(root, 'ssl/long'), 17 * 2 ** 20)
    const made = view(step('ssl', '/etc/ssl'))
    expect(lstatSync(join(made, 'ssl/long')).size).toBe(17 * 2 ** 20)
  })
  test('has no setuid bit and no file that others may write', () => {
    host('ssl/tool', 'x', 0o4777)
    expect(lstatSync(join(view(step('ssl', '/etc/ssl')), 'ssl/tool')).mode & 0o7777).toBe(0o755)
  })
  test('is made once, and again when a source or a text changed', () => {
    host('ssl/a', '1')
    const first = view(step('ssl', '/etc/ssl'))
    expect(view(step('ssl', '/etc/ssl'))).toBe(first)
    utimesSync(join(root, 'ssl'), 1, 1)
    const second = view(step('ssl', '/etc/ssl'))
    expect(second).not.toBe(first)
    expect(view(step('ssl', '/etc/ssl'), file('/etc/hosts', 'x'))).not.toBe(second)
  })
  test('leaves out a source that is gone', () => {
    const made = view(step('absent', '/etc/absent'), file('/etc/hosts', 'x'))
    expect(existsSync(join(made, 'absent'))).toBe(false)
  })
  test('leaves no draft beside it', () => {
    view(file('/etc/hosts', 'x'))
    expect(readdirSync(join(root, 'cache/etc')).filter(name => name.startsWith('draft-'))).toEqual([])
  })
  test('a draft of a killed pen is removed when the next view is made', () => {
    view(file('/etc/hosts', 'x'))
    const draft = join(root, 'cache/etc/draft-killed')
    mkdirSync(draft)
    utimesSync(draft, 1, 1)
    view(file('/etc/hosts', 'y'))
    expect(existsSync(draft)).toBe(false)
  })
  test('says how to fix a directory that is not writable', () => {
    writeFileSync(join(root, 'cache'), '')
    expect(() => view(file('/etc/hosts', 'x'))).toThrow('could not prepare its copy of /etc')
  })
})

describe('what a grant mounts at /etc', () => {
  const standing = (steps: EtcStep[], ...grants: [from: string, at: string][]) =>
    etcView(
      steps,
      join(root, 'cache'),
      grants.map(([from, at]) => step(from, at, 'granted by command line') as BindStep),
    )
  test('has an empty mount point, and existing entries stay', () => {
    host('key.pem', 'KEY')
    host('ssl/cert.pem', 'CERT')
    const made = standing([step('ssl', '/etc/ssl')], ['key.pem', '/etc/ssl/key.pem'], ['ssl', '/etc/a/b'])
    expect(readFileSync(join(made, 'ssl/key.pem'), 'utf8')).toBe('')
    expect(readdirSync(join(made, 'a/b'))).toEqual([])
    expect(standing([step('ssl', '/etc/ssl')], ['ssl', '/etc/ssl'])).not.toBe(made)
    expect(view(step('ssl', '/etc/ssl'))).not.toBe(made)
  })
  test('is refused where a link or another kind is in the way, and nothing is made at the link’s target', () => {
    symlinkSync(join(root, 'ssl'), join(root, 'link'))
    host('key.pem', 'KEY')
    expect(() => standing([step('link', '/etc/link')], ['key.pem', '/etc/link/key.pem'])).toThrow('/etc/link')
    expect(() => standing([file('/etc/hosts', 'x')], ['ssl', '/etc/hosts'])).toThrow('another kind')
    expect(() => standing([step('ssl', '/etc/ssl')], ['key.pem', '/etc/ssl'])).toThrow('another kind')
    expect(readdirSync(join(root, 'ssl'))).toEqual([])
    expect(readdirSync(join(root, 'cache/etc'))).toEqual([])
  })
})

test('only the system’s own entries are part of it, not a grant of the user’s', () => {
  expect(isEtcStep(step('ssl', '/etc/ssl'))).toBe(true)
  expect(isEtcStep(step('ssl', '/etc/ssl', 'granted by command line'))).toBe(false)
  expect(isEtcStep(step('ssl', '/usr/ssl'))).toBe(false)
  expect(isEtcStep({ op: 'seal', at: '/etc' } as unknown as Step)).toBe(false)
})
