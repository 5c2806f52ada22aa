import { expect, test } from 'bun:test'
import { parseOsRelease } from './distribution.ts'
import { judgeStorage } from './engines.ts'

const debian = parseOsRelease('ID=debian\n')
const vfs = { driver: 'vfs', rootless: true, storage: '/home/u/storage' }

test('overlay storage is ok, vfs storage is weak with a fix for this kernel', () => {
  expect(judgeStorage('podman', { ...vfs, driver: 'overlay' }, debian)).toEqual([])
  const [recent] = judgeStorage('podman', vfs, debian, '6.1.0')
  expect(recent).toMatchObject({ id: 'storage-podman', status: 'weak' })
  expect(recent?.fix).toMatch(/^write \[storage\] and driver = "overlay" into ~\/\.config/)
  expect(judgeStorage('podman', vfs, debian, '5.10.0')[0]?.fix).toContain('fuse-overlayfs')
  expect(judgeStorage('podman', { ...vfs, rootless: false }, debian, '5.10.0')[0]?.fix).toContain(
    '/etc/containers',
  )
  expect(judgeStorage('docker', { ...vfs, rootless: false }, debian)[0]?.fix).toContain('overlay2')
})
