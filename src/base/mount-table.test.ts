import { describe, expect, test } from 'bun:test'
import { mountOf, otherPathsOf, parseMounts } from './mount-table.ts'

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

const mounts = (...lines: readonly string[]) =>
  parseMounts(['21 1 8:1 / / rw - ext4 /dev/sda1 rw', ...lines, ''].join('\n'))

describe('the other paths of a file', () => {
  test.each<[string, string, string[]]>([
    ['a directory above it', '40 21 8:1 /opt /ws/tools rw - ext4 /dev/sda1 rw', ['/ws/tools/pen']],
    ['the directory itself', '40 21 8:1 /opt/pen /ws/a\\040b rw - ext4 /dev/sda1 rw', ['/ws/a b']],
    ['a part of it', '40 21 8:1 /opt/pen/dist /ws/dist rw - ext4 /dev/sda1 rw', ['/ws/dist']],
    ['the whole file system', '40 21 8:1 / /ws/all rw - ext4 /dev/sda1 rw', ['/ws/all/opt/pen']],
  ])('are found by a bind mount of %s', (_, line, paths) => {
    expect(otherPathsOf('/opt/pen', mounts(line))).toEqual(paths)
  })

  test('are found for a path that is itself below a bind mount', () => {
    const line = '40 21 8:1 /data/opt /opt rw - ext4 /dev/sda1 rw'
    expect(otherPathsOf('/opt/pen', mounts(line))).toEqual(['/data/opt/pen'])
  })

  test.each<[string, string[]]>([
    ['another file system is mounted', ['40 21 8:2 /opt /ws/tools rw - ext4 /dev/sdb1 rw']],
    ['another directory is mounted', ['40 21 8:1 /opt/penguin /ws/tools rw - ext4 /dev/sda1 rw']],
    [
      'a later mount hides it',
      ['40 21 8:1 /opt /ws/tools rw - ext4 /dev/sda1 rw', '41 40 0:50 / /ws/tools rw - tmpfs tmpfs rw'],
    ],
    ['nothing else is mounted', []],
  ])('are none when %s', (_, lines) => {
    expect(otherPathsOf('/opt/pen', mounts(...lines))).toEqual([])
  })
})
