import { describe, expect, test } from 'bun:test'
import { parseOsRelease } from './distribution.ts'
import { blockedBy } from './kernel.ts'

const ubuntu = parseOsRelease('ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04"')
const nothing = { apparmor: undefined, clone: undefined, most: undefined, container: false }

describe('where user namespaces are blocked', () => {
  test.each([
    [{ ...nothing, most: '0' }, 'user.max_user_namespaces=15000'],
    [{ ...nothing, clone: '0' }, 'kernel.unprivileged_userns_clone=1'],
    [{ ...nothing, apparmor: '1', most: '9000' }, 'kernel.apparmor_restrict_unprivileged_userns=0'],
    [{ ...nothing, container: true }, '--security-opt seccomp=unconfined'],
    [{ ...nothing, clone: '1', apparmor: '0' }, 'CONFIG_USER_NS'],
  ])('%j is reported with its fix', (switches, fix) => {
    expect(blockedBy(switches, ubuntu).fix).toContain(fix)
  })

  test('a switch of the host comes before the container that pen runs in', () => {
    expect(blockedBy({ ...nothing, most: '0', container: true }, ubuntu).why).toContain('max_user_namespaces')
  })
})
