import { expect, test } from 'bun:test'
import { fillByHand } from './debian-packages.ts'

test('each other package manager has one line that fetches kernel, BusyBox and virtiofsd, and unpacks them', () => {
  for (const [manager, unpacks] of Object.entries({ dnf: 'rpm2cpio', pacman: '.pkg.tar.zst', apk: '.apk' })) {
    const line = fillByHand(name => name === manager) ?? ''
    for (const part of ['virtiofsd', 'busybox', unpacks])
      expect([manager, line]).toEqual([manager, expect.stringContaining(part)])
    const { exitCode, stderr } = Bun.spawnSync(['sh', '-n', '-c', line])
    expect([manager, exitCode, stderr.toString()]).toEqual([manager, 0, ''])
  }
  expect(fillByHand(() => false)).toBeUndefined()
})
