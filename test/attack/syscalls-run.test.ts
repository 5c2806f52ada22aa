/** The probes of syscalls.test.ts, in the sandbox that users get: `pen run` with all of its layers. */
import { afterAll, expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from '../conformance/box.ts'
import { conformance } from '../conformance/conformance.ts'
import type { RunOptions } from '../conformance/launcher.ts'
import { CACHE } from '../engines/base-image.ts'
import { DAEMONS } from '../engines/dockerd.ts'
import { RUN } from '../engines/podman.ts'
import { compileProbe, describeProbe, isSafe, isTwin, type Probe, runProbe } from './run-probe.ts'

const ready = process.platform === 'linux' && spawnSync('cc', ['--version']).status === 0
const { program, remove } = ready ? compileProbe() : { program: '', remove: () => {} }
afterAll(remove)

async function probesIn(box: Box, options?: RunOptions): Promise<readonly Probe[]> {
  const inside = join(box.project, 'probe')
  copyFileSync(program, inside)
  chmodSync(inside, 0o755)
  const { stdout } = await box.run(['./probe'], options)
  return runProbe(inside, () => stdout)
}
const unsafe = (probes: readonly Probe[]) => probes.filter(probe => !isSafe(probe)).map(describeProbe)

/** State that a probe would have changed for the whole machine. */
const KERNEL = ['core_pattern', 'hostname', 'domainname', 'randomize_va_space']
const settings = () =>
  KERNEL.map(name => readFileSync(`/proc/sys/kernel/${name}`, 'utf8')).concat(
    readFileSync('/proc/self/mountinfo', 'utf8')
      .split('\n')
      // Mounts that engines of other tests make meanwhile.
      .filter(line => ![CACHE, DAEMONS, RUN].some(place => line.includes(place))),
  )

conformance(
  'P12 in a run every hostile call gets a safe answer, every twin works, and the host is unchanged',
  async box => {
    const before = settings()
    const probes = await probesIn(box)
    expect(unsafe(probes)).toEqual([])
    expect(probes.filter(probe => !isTwin(probe)).length).toBeGreaterThanOrEqual(150)
    expect(probes.filter(isTwin).length).toBeGreaterThanOrEqual(50)
    expect(settings()).toEqual(before)
  },
)

conformance('P12 it is the same for every profile, and with a fully open policy', async box => {
  for (const flags of [
    ['--profile', 'strict'],
    ['--profile', 'dev'],
    ['--limit', 'pids=4096', '--limit', 'files=65536'],
  ])
    expect([flags, unsafe(await probesIn(box, { flags }))]).toEqual([flags, []])
})

conformance('P12 it is the same on a terminal', async box => {
  const script = `import os, pty, sys
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])
try:
  while data := os.read(fd, 65536): os.write(1, data)
except OSError: pass
os.waitpid(pid, 0)`
  const inside = join(box.project, 'driver.py')
  box.file(inside, script)
  const probes = await probesIn(box, {
    through: `exec /usr/bin/python3 ${inside} "$@" | tr -d '\\r' | grep '^{'`,
  })
  // The only terminal inside is the sandbox's own.
  expect(unsafe(probes.filter(({ id }) => id !== 'C42-host-tty'))).toEqual([])
})

conformance('P12 setuid programs and others that gain privileges gain none inside', async box => {
  const { stdout } =
    await box.sh(`for p in sudo su newgrp newuidmap newgidmap mount umount passwd chsh pkexec ping; do
      path=$(command -v $p) && [ -u "$path" ] && echo "$p $(stat -c %u "$path")"; done
    su -c id root </dev/null; mount -t tmpfs none /tmp; umount /tmp; newgrp root </dev/null; unshare -Ur id; chroot / id
    nsenter -t 1 -m id; capsh --print | grep '^Current: =.'; grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/self/status; id -u; true`)
  const lines = stdout.trim().split('\n')
  expect(lines.filter(line => /uid=|Current: =./.test(line))).toEqual([])
  expect(lines.slice(-4)).toEqual([
    'CapEff:\t0000000000000000',
    'NoNewPrivs:\t1',
    'Seccomp:\t2',
    String(box.launcher.who.uid === 0 ? 1000 : box.launcher.who.uid),
  ])
})
