import { describe, expect, test } from 'bun:test'
import { policyOf } from '../../test/arbitrary/policy.ts'
import type { HostPath } from '../policy/files/path.ts'
import { searchPath, toolchainVariables } from './search-path.ts'

const tree = (path: string) => ({ kind: 'tree', path: path as HostPath }) as const
const SYSTEM = [tree('/usr'), tree('/opt'), tree('/etc/alternatives'), tree('/h/u/.rustup')]
const OURS = ['/usr/local/sbin', '/usr/local/bin', '/usr/sbin', '/usr/bin', '/sbin', '/bin']

const policy = policyOf({ version: 1 })
const ws = policy.workspace
const LINKS: Readonly<Record<string, string>> = {
  '/h/u/nvm': '/opt/nvm',
  '/h/u/out': '/srv/x',
  '/usr/bin': '/x',
}
const path = (text: string) => searchPath(text, policy, SYSTEM, place => LINKS[place] ?? place)

describe('the search path inside', () => {
  test('is the system’s, whatever the host says', () => {
    for (const text of [
      '',
      '/usr/bin:/bin',
      '/bin:/usr/bin',
      'relative::.',
      '/root/bin:/etc/alternatives:/etc',
    ])
      expect(path(text).all).toEqual(OURS)
  })
  test('keeps the user’s directories before or after the system’s, once', () => {
    const { all } = path(`/opt/a/bin:${ws}/.venv/bin:/usr/bin:/usr/local/go/bin:/opt/a/bin`)
    expect(all).toEqual(['/opt/a/bin', `${ws}/.venv/bin`, ...OURS, '/usr/local/go/bin'])
  })
  test('has only normalized paths', () => {
    expect(path(`/usr/../root/bin:/opt/./a:${ws}/../x:/opt/a/`).all).toEqual(OURS)
  })
  test('has the target of a link, if the sandbox sees it', () => {
    expect(path('/h/u/nvm:/h/u/out:/usr/bin').all).toEqual(['/opt/nvm', ...OURS])
  })
  test('has places in which listed tools are looked for, and none of them can be written inside', () => {
    expect(path(`${ws}/bin:/opt/a/bin`).readOnly).toEqual(['/opt/a/bin', ...OURS])
  })
})

describe('a toolchain finds where it is installed', () => {
  const told = (env: Record<string, string>) => Object.fromEntries(toolchainVariables(env, '/h/u', SYSTEM))
  test('when the sandbox sees it', () => {
    expect(told({})).toEqual({ RUSTUP_HOME: '/h/u/.rustup' })
    expect(told({ RUSTUP_HOME: '/usr/local/rustup', NVM_DIR: '/opt/nvm' })).toEqual({
      RUSTUP_HOME: '/usr/local/rustup',
      NVM_DIR: '/opt/nvm',
    })
  })
  test('and not by a host variable that names another place', () => {
    expect(told({ RUSTUP_HOME: '/h/u/private', NVM_DIR: '/usr/../h/u/.nvm', PYENV_ROOT: 'x' })).toEqual({
      RUSTUP_HOME: '/h/u/.rustup',
    })
  })
})
