import { describe, expect, test } from 'bun:test'
import { mountOf, parseMounts } from './mount-table.ts'

const TABLE = `25 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 25 0:30 / /home rw,nosuid shared:2 - nfs4 server:/home rw
31 25 0:31 / /home/with\\040space ro,noexec - fuse.sshfs there rw
32 25 0:32 / /over rw - ext4 /dev/sdb rw
33 25 0:33 / /over rw - tmpfs none rw
nonsense
`

describe('the mount of a path', () => {
  const mounts = parseMounts(TABLE)
  test.each([
    ['/etc', 'ext4'],
    ['/home', 'nfs4'],
    ['/home/me/project', 'nfs4'],
    ['/homestead', 'ext4'],
    ['/home/with space/x', 'fuse.sshfs'],
    ['/over/x', 'tmpfs'],
  ])('%s lies on %s', (path, type) => {
    expect(mountOf(path, mounts)?.type).toBe(type)
  })

  test('has the options of the mount, not of the file system', () => {
    expect([...(mountOf('/home/with space', mounts)?.options ?? [])]).toEqual(['ro', 'noexec'])
  })
})
