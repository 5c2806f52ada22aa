import { expect } from 'bun:test'
import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { quote } from './box.ts'
import { conformance } from './conformance.ts'
import { isRoot } from './launcher.ts'

conformance('P2 nothing appears outside of the project, and what is written inside does', async box => {
  const { home, project } = box
  const before = box.listing()
  const name = `pen-written-${process.pid}`
  const places = [
    '/',
    '/tmp/',
    '/var/tmp/',
    '/dev/shm/',
    '/etc/',
    '/usr/',
    '/usr/local/bin/',
    '/opt/',
    '/run/',
    '/root/',
    '/dev/',
  ]
  await box.sh(`
    for p in ${places.join(' ')} ../ ../.ssh/ ${quote(home)}/ /proc/self/root/ /proc/1/root/tmp/ /proc/1/cwd/../; do
      mkdir -p \${p} 2>/dev/null; echo x > \${p}${name}; mkdir \${p}${name}-d; ln -s /etc \${p}${name}-l; mv made \${p}${name}-m
    done 2>/dev/null
    echo twin > ${name}; mkdir dir; mv ${name} dir/moved; ln -s moved dir/link`)
  for (const place of places) expect([place, existsSync(join(place, name))]).toEqual([place, false])
  const after = box.listing().filter(line => !before.includes(line))
  expect(after.map(line => line.split(' ')[0])).toEqual(
    ['dir', 'dir/link', 'dir/moved'].map(path => join('/home/project', path)),
  )
  expect(readFileSync(join(project, 'dir/moved'), 'utf8')).toBe('twin\n')
})

conformance(
  'P2 a read-only place resists every way of changing it',
  async box => {
    const data = box.file(join(box.home, 'data/file'), 'DATA')
    box.file('twin', 'DATA')
    const before = box.listing(join(box.home, 'data'))
    const ways = (path: string) => `
    echo x >> ${path}; truncate -s 0 ${path}; touch -d 2001-01-01 ${path}; chmod 777 ${path}; rm -f ${path}
    mv ${path} ${path}2; ln ${path} ${path}3; dd if=/dev/zero of=${path} oflag=direct bs=512 count=1
    mount -o remount,rw ${path}; mount -o remount,bind,rw "$(dirname ${path})"; umount -l "$(dirname ${path})"
    /usr/bin/python3 -c "
import os, mmap, sys
for f in (lambda: os.setxattr('${path}', 'user.x', b'1'), lambda: os.utime('${path}', (1, 1)),
          lambda: os.posix_fallocate(os.open('${path}', os.O_RDWR), 0, 9999), lambda: os.rename('${path}', '/tmp/x'),
          lambda: mmap.mmap(os.open('${path}', os.O_RDONLY), 4, mmap.MAP_SHARED, mmap.PROT_WRITE).write(b'x'),
          lambda: os.open('/proc/self/fd/%d' % os.open('${path}', os.O_RDONLY), os.O_RDWR), lambda: os.chown('${path}', 0, 0)):
    try: f()
    except Exception: pass
"`
    await box.sh(`(${ways(data)}) 2>/dev/null`, { flags: ['--read', join(box.home, 'data')] })
    expect(box.listing(join(box.home, 'data'))).toEqual(before)
    expect(readFileSync(data, 'utf8')).toBe('DATA')
    expect(
      (await box.sh('truncate -s 0 twin && touch -d 2001-01-01 twin && mv twin twin2 && cat twin2')).code,
    ).toBe(0)
  },
  { review: 'ordinary' },
)

conformance('P2 a write grant opens that path alone', async box => {
  box.directory(join(box.home, 'out'))
  await box.sh('echo a > ../out/file; echo b > ../beside; mv ../out ../renamed; rmdir ../out', {
    flags: ['--write', join(box.home, 'out')],
  })
  expect(box.host('cat ../out/file')).toBe('a\n')
  expect(readdirSync(box.home).filter(name => name !== '.pen')).toEqual(['out', 'project'])
})

conformance(
  'P2 strict writes only ./output, and leaves no trace of it when nothing was written',
  async box => {
    box.file('source', 'S')
    const before = box.listing()
    await box.sh('echo x > source; echo x > new; rm source; mkdir dir', { flags: ['--profile', 'strict'] })
    expect(box.listing()).toEqual(before)
    await box.sh('echo result > output/file', { flags: ['--profile', 'strict'] })
    expect(readFileSync(join(box.project, 'output/file'), 'utf8')).toBe('result\n')
  },
)

conformance('P2 a link planted at a granted place is never followed', async box => {
  const target = box.directory(join(box.root, 'victim'), 0o777)
  for (const link of [
    target,
    '../../victim',
    '../../../../../../../../../../tmp',
    '/run',
    '../.ssh',
    'absent/x',
  ]) {
    symlinkSync(link, join(box.project, 'output'))
    const ran = await box.sh('echo x > output/evil; echo x > /tmp/pen-evil', {
      flags: ['--profile', 'strict'],
    })
    expect([link, ran.code]).toEqual([link, 2])
    expect(ran.stderr).toContain('PATH_REFUSED')
    box.host('rm output')
  }
  expect(readdirSync(target)).toEqual([])
  expect(existsSync('/tmp/pen-evil')).toBe(false)
})

conformance('P2 a directory that holds more than one project is not a project', async box => {
  box.file('f', 'x')
  const marker = `pen-ran-${process.pid}`
  for (const cwd of ['/', box.home, '/tmp', '/usr', '/proc', '/dev', join(box.home, '.pen')]) {
    box.directory(join(box.home, '.pen'), 0o700)
    const ran = await box.sh(`echo ${marker}`, { cwd })
    expect([cwd, ran.code, ran.stdout]).toEqual([cwd, 2, ''])
    expect(ran.stderr).toMatch(/cannot be a project: .*\n.*fix: cd into/)
  }
  expect((await box.sh('cat f')).stdout).toBe('x')
})

conformance(
  'P2 root, mapped to another uid, writes nothing of the kernel’s and nothing of root’s',
  async box => {
    const before = readFileSync('/proc/sys/kernel/core_pattern', 'utf8')
    const { stdout } = await box.sh(`
      for f in /proc/sys/kernel/core_pattern /proc/sys/kernel/hostname /proc/sys/vm/drop_caches /proc/sysrq-trigger \
        /proc/sys/kernel/modprobe /proc/self/oom_adj_x /sys/kernel/uevent_helper /proc/1/oom_score_adj; do
        [ -w $f ] && echo "$f can be written"; (echo x >> $f) 2>/dev/null && echo "$f was written"
      done; [ -r /proc/kcore ] && echo kcore; id -u; true`)
    expect(
      stdout
        .trim()
        .split('\n')
        .filter(line => !line.startsWith('/proc/1/oom')),
    ).toEqual([expect.stringMatching(/^[1-9]\d*$/)])
    expect(readFileSync('/proc/sys/kernel/core_pattern', 'utf8')).toBe(before)
  },
  { only: ({ who }) => who.uid === 0 && isRoot },
)
