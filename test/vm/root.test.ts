/** `vm.root`: commands are root of the guest. They change all of its system, and nothing of the host's. */
import { afterAll, expect } from 'bun:test'
import { existsSync, lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Recorder } from '../library/recorder.ts'
import { until } from '../until.ts'
import { inMachine, ofTheGuest, onMachine, startMachine } from './machine.ts'

const recorder = await Recorder.open()
afterAll(() => recorder.close())

const MAKE_PACKAGE = `mkdir -p package/DEBIAN package/usr/bin
printf 'Package: from-test\\nVersion: 1\\nArchitecture: all\\nMaintainer: test <a@b.c>\\nDescription: x\\n' >package/DEBIAN/control
printf '#!/bin/sh\\necho installed\\n' >package/usr/bin/from-test
chmod 755 package/usr/bin/from-test
dpkg-deb --root-owner-group --build package from-test.deb`

const MAKE_IMAGE = `mkdir -p root/bin
cp "$HOME/.pen/cache/vm/busybox" root/bin/busybox
for name in sh id uname; do ln -s busybox root/bin/$name; done`

const RUN_IMAGE = `tar -C root -c . | podman import - localhost/tiny >/dev/null &&
podman run --rm --network none localhost/tiny sh -c 'id -u; uname -r; exit 7'`

/** The first process has the port open, and the kernel opens it once. Root takes a copy of that descriptor. */
const WRITE_GARBAGE = `
import ctypes, os
libc = ctypes.CDLL(None)
port = next(int(fd) for fd in os.listdir("/proc/1/fd") if "vport" in os.readlink("/proc/1/fd/" + fd))
own = libc.syscall(438, os.pidfd_open(1), port, 0)
for _ in range(64): os.write(own, os.urandom(4096))`

/** Engines and package managers take most of their time where QEMU translates. */
const SLOW = { timeoutMs: 100_000 }

inMachine(
  (here, who) => {
    const onOneMachine = ofTheGuest(who)

    onOneMachine('P7 a root of the guest has every capability there, and installs packages', async () => {
      const { stdout } = await here().sh(
        'id -u; grep CapEff /proc/self/status; apt-get install -y ./from-test.deb >/dev/null && from-test; uname -r >/tmp/kernel',
        SLOW,
      )
      expect(stdout).toMatch(/^0\nCapEff:\s0+1f*\ninstalled\n$/)
      expect(existsSync('/usr/bin/from-test')).toBe(false)
      expect(readFileSync('/var/lib/dpkg/status', 'utf8')).not.toContain('from-test')
    })

    onOneMachine('P7 a root of the guest runs a container of a local image by podman', async () => {
      const { code, stdout } = await here().sh(RUN_IMAGE, SLOW)
      const kernel = (await here().sh('uname -r')).stdout
      expect([code, stdout]).toEqual([7, `0\n${kernel}`])
    })

    onMachine(
      'P1 P2 P3 a root of the guest reads and writes no more of the host than a user of it',
      async () => {
        const { box } = here()
        await here().sh(`mkdir /tmp/again; mount -t virtiofs tree /tmp/again
ls -A /tmp/again/proc >processes; ls /tmp/again >tree; mount -t virtiofs project /tmp/again
for at in "" /tmp/again; do
  cat $at/.env $at${box.project}/.env $at${box.home}/outside $at/etc/shadow >>seen 2>/dev/null
  rm -f $at${box.project}/.envrc; umount $at${box.project}/.envrc; mv $at/.envrc $at/moved; echo x >$at${box.project}/.envrc
  echo x >$at${box.home}/readable/file; echo x >$at/usr/from-root; echo x >$at/etc/from-root
done
echo granted >${box.home}/writable/file; echo plain >plain
cp /bin/true suid; chmod 4755 suid; mknod device b 8 0; chown 12345 plain; ln -s ${box.home}/outside link; cat link >>seen`)
        const host = (path: string): string => readFileSync(path, 'utf8')
        // A process of the host that could be written would run the guest's code there.
        expect(host(join(box.project, 'processes'))).toBe('')
        expect(host(join(box.project, 'tree'))).toContain('proc\n')
        expect(host(join(box.project, 'seen'))).not.toMatch(/secret|outside|root:/)
        expect(host(join(box.project, '.envrc'))).toBe('export A=1\n')
        expect(host(join(box.home, 'readable/file'))).toBe('readable\n')
        expect(host(join(box.home, 'writable/file'))).toBe('granted\n')
        for (const path of ['/usr/from-root', '/etc/from-root'])
          expect([path, existsSync(path)]).toEqual([path, false])
        const made = (name: string) => lstatSync(join(box.project, name))
        expect([made('plain').uid, made('suid').uid]).toEqual([box.launcher.who.uid, box.launcher.who.uid])
        expect(made('suid').mode & 0o6000).toBe(0)
        expect(existsSync(join(box.project, 'device'))).toBe(false)
      },
    )

    onOneMachine(
      'P10 a root of the guest reaches an allowed host, and no other by any address or card',
      async () => {
        const own = `/root-${here().box.launcher.who.uid}`
        const port = recorder.target.split(':')[1]
        const { stdout } = await here().sh(`curl -sS -m 20 http://${recorder.target}${own}
ip route replace default dev eth0; ip addr add 192.0.2.9/24 dev eth0
for host in 10.0.2.2 10.0.2.3 127.0.0.1 192.0.2.1; do curl -s -m 5 http://$host:${port}${own}-around; done`)
        expect(stdout).toBe('reached\n')
        expect(recorder.seen.filter(url => url.startsWith(own))).toEqual([own])
      },
    )

    // The last claim: it ends the machine.
    onOneMachine(
      'P17 a root that ends its kernel or breaks the protocol ends its sandbox, and leaves nothing',
      async () => {
        for (const end of [
          `python3 -c '${WRITE_GARBAGE}'`,
          'echo c >/proc/sysrq-trigger',
          'echo b >/proc/sysrq-trigger',
        ]) {
          const { code, stderr } = await here().sh(`${end}; sleep 60`)
          expect([end, code === 0, stderr.includes('INTERNAL')]).toEqual([end, false, false])
          await until(() => here().supervisor() === undefined, 20_000)
          expect(here().leftovers()).toEqual([])
          await startMachine(here())
        }
        expect((await here().sh('echo works')).stdout).toBe('works\n')
      },
    )
  },
  here => {
    const { box } = here
    box.file('.env', 'secret\n')
    box.file('.envrc', 'export A=1\n')
    box.file(join(box.home, 'outside'), 'outside\n')
    box.file(join(box.home, 'readable/file'), 'readable\n')
    box.file(join(box.home, 'writable/file'), 'before\n')
    box.host(`${MAKE_PACKAGE}\n${MAKE_IMAGE}`)
    const grants = ['--read', join(box.home, 'readable'), '--write', join(box.home, 'writable')]
    return ['--allow', recorder.target, '--deny', '.env', ...grants]
  },
  { vm: { root: true } },
)
