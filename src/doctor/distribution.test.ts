import { describe, expect, test } from 'bun:test'
import { installLine, parseOsRelease } from './distribution.ts'

const install = (text: string, ...packages: string[]) => installLine(parseOsRelease(text), ...packages)

describe('a fix', () => {
  test.each([
    ['ID=debian', 'sudo apt-get install bubblewrap'],
    ['ID=linuxmint\nID_LIKE="ubuntu debian"', 'sudo apt-get install bubblewrap'],
    ['ID=fedora', 'sudo dnf install bubblewrap'],
    ['ID="rocky"\nID_LIKE="rhel centos fedora"', 'sudo dnf install bubblewrap'],
    ['ID=arch', 'sudo pacman -S bubblewrap'],
    ['ID=alpine', 'sudo apk add bubblewrap'],
    ['ID="opensuse-leap"\nID_LIKE="suse opensuse"', 'sudo zypper install bubblewrap'],
    ['ID=nixos', "install bubblewrap with this system's package manager"],
    ['', "install bubblewrap with this system's package manager"],
  ])('for %j is %s', (text, line) => {
    expect(install(text, 'bubblewrap')).toBe(line)
  })

  test('names a package as the distribution does', () => {
    expect(install('ID=alpine', 'util-linux')).toBe('sudo apk add util-linux-misc setpriv')
    expect(install('ID=debian', 'util-linux')).toBe('sudo apt-get install util-linux')
  })
})

describe('os-release', () => {
  test('is read with and without quotes, and other lines are skipped', () => {
    const text = `# a comment\nPRETTY_NAME='Some Linux 1'\nID=some\nnonsense\n=x\n`
    expect(parseOsRelease(text)).toEqual({ id: 'some', name: 'Some Linux 1', installer: undefined })
  })

  test('names no key of an object by accident', () => {
    expect(parseOsRelease('ID=constructor\nID_LIKE=toString').installer).toBeUndefined()
  })
})
