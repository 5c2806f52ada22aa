import { afterAll, describe, expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { seccompFilter } from '../../src/backend/seccomp/filter.ts'
import type { FilterOptions } from '../../src/backend/seccomp/rules.ts'
import { type SeccompArch, syscallNumbers } from '../../src/backend/seccomp/syscalls.ts'
import { bwrapWorks, hostTree } from '../bubblewrap.ts'
import { onlyWhen, skipUnless } from '../skip.ts'
import {
  compileProbe,
  describeProbe,
  isSafe,
  isTwin,
  type Launch,
  type Probe,
  runProbe,
} from './run-probe.ts'

const arch = process.arch === 'arm64' ? 'arm64' : 'x64'
const USER = 'pentest'
const works = (...argv: [string, ...string[]]) => spawnSync(argv[0], argv.slice(1)).status === 0
const isRoot = process.getuid?.() === 0

const ready = bwrapWorks() && works('cc', '--version')
const onBwrap = skipUnless(ready, 'bubblewrap and a C compiler that work are missing')
const asRoot = onlyWhen(isRoot && ready)
const { program, remove } = ready ? compileProbe() : { program: '', remove: () => {} }
afterAll(remove)

const SANDBOX = [
  ...['bwrap', '--unshare-all', '--cap-drop', 'ALL', '--new-session', '--die-with-parent'],
  ...hostTree(),
  ...['--dev', '/dev', '--proc', '/proc', '--tmpfs', '/tmp'],
]

interface How {
  readonly filter?: FilterOptions
  readonly filterFor?: SeccompArch
  readonly user?: string
}

/** Runs argv in bubblewrap alone, without the rest of pen: the filter alone must hold. */
/** A clone of the repository may be in /tmp, which the sandbox replaces. */
const BUN_MOUNT = ['--ro-bind', process.execPath, process.execPath]

function inBwrap(
  argv: readonly string[],
  { filter, filterFor = arch, user }: How,
  mounts: readonly string[] = [],
) {
  const file = join(dirname(program), `filter-${process.pid}`)
  if (filter !== undefined) writeFileSync(file, seccompFilter(filter, filterFor))
  const fd = openSync(filter === undefined ? '/dev/null' : file, 'r')
  try {
    const become =
      user === undefined ? [] : ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups']
    const seccomp = filter === undefined ? [] : ['--seccomp', '3']
    const [first = '', ...rest] = [...become, ...SANDBOX, ...mounts, '--chdir', '/tmp', ...seccomp, ...argv]
    const env = { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin', HOME: '/tmp', LANG: 'C.UTF-8' }
    return spawnSync(first, rest, {
      stdio: ['ignore', 'pipe', 'pipe', fd],
      encoding: 'utf8',
      timeout: 30_000,
      killSignal: 'SIGKILL',
      env,
    })
  } finally {
    closeSync(fd)
    rmSync(file, { force: true })
  }
}

const bwrap =
  (how: How): Launch =>
  path => {
    const { status, stdout, stderr } = inBwrap([path], how, ['--ro-bind', path, path])
    if (status !== 0) throw new Error(`the probe ended with ${status}: ${stderr}`)
    return stdout
  }

const owed = (probes: readonly Probe[]) => probes.filter(probe => probe.layer !== 'pen')
const unsafe = (probes: readonly Probe[]) =>
  owed(probes)
    .filter(probe => !isSafe(probe))
    .map(describeProbe)

describe('the system call filter on this kernel', () => {
  onBwrap('P12 150 or more hostile calls get a safe answer, and their twins work', () => {
    const probes = runProbe(program, bwrap({ filter: { exec: 'any' } }))
    expect(unsafe(probes)).toEqual([])
    expect(owed(probes).filter(probe => !isTwin(probe)).length).toBeGreaterThanOrEqual(150)
    expect(probes.filter(isTwin).length).toBeGreaterThanOrEqual(50)
    expect(new Set(probes.map(({ id }) => id)).size).toBe(probes.length)
  })

  onBwrap('P12 without the filter the same probes find a hundred holes, and the twins still work', () => {
    const probes = runProbe(program, bwrap({}))
    expect(owed(probes).filter(probe => !isSafe(probe)).length).toBeGreaterThan(100)
    expect(
      probes
        .filter(isTwin)
        .filter(probe => !isSafe(probe))
        .map(describeProbe),
    ).toEqual([])
  })

  asRoot('P12 the probe itself is harmless on a host: with a capability it does nothing', () => {
    const power = ['--ro-bind', program, program, '--cap-add', 'CAP_SYS_ADMIN']
    const { status, stdout } = inBwrap([program], {}, power)
    expect({ status, stdout }).toEqual({ status: 3, stdout: '' })
  })

  asRoot('P12 an ordinary user gets the same answers as root', () => {
    if (!works('id', USER)) works('useradd', '-m', USER)
    expect(unsafe(runProbe(program, bwrap({ filter: { exec: 'any' }, user: USER })))).toEqual([])
  })

  onBwrap('P12 where only listed programs may run, a memfd is the one twin that is lost', () => {
    const probes = runProbe(program, bwrap({ filter: { exec: 'listed' } }))
    expect(
      owed(probes)
        .filter(probe => !isSafe(probe))
        .map(({ id }) => id),
    ).toEqual(['A06-memfd'])
  })
})

describe('a filter for another architecture', () => {
  onBwrap('P12 is accepted by the kernel, and kills at the first call', () => {
    const other = arch === 'x64' ? 'arm64' : 'x64'
    const run = (filterFor: SeccompArch) => inBwrap(['true'], { filter: { exec: 'any' }, filterFor })
    expect(run(arch).status).toBe(0)
    // bubblewrap describeProbe nothing. It would print an error for a program that the kernel cannot load.
    expect({ ok: run(other).status === 0, stderr: run(other).stderr }).toEqual({ ok: false, stderr: '' })
  })
})

describe('the table of numbers', () => {
  onBwrap('P12 matches the kernel headers of this machine, with nothing left out', () => {
    const { stdout } = spawnSync('cc', ['-E', '-dM', '-include', 'asm/unistd.h', '-x', 'c', '/dev/null'], {
      encoding: 'utf8',
    })
    const headers = [...stdout.matchAll(/^#define __NR_(\w+) (\d+)$/gm)]
    const numbers = syscallNumbers(arch)
    expect(headers.length).toBeGreaterThan(250)
    for (const [, name = '', number] of headers)
      expect([name, numbers.get(name)]).toEqual([name, Number(number)])
  })
})

describe('ordinary programs under the filter', () => {
  const bun = process.execPath
  const hello = `printf '#include <stdio.h>\\nint main(void){puts("hi");}' > a.c && cc -o a a.c && ./a`
  const git = `git init -q r && cd r && git config user.email a@example.com && git config user.name a &&
    echo x > f && git add f && git commit -q -m one && git gc -q && git clone -q . ../s && git -C ../s log --oneline`
  const node = `require('fs').cpSync('/etc/hostname', 'h'); require('dns').lookup('localhost', () => {});
    new (require('worker_threads').Worker)('console.log(1)', { eval: true });
    require('os').networkInterfaces(); require('child_process').execFileSync('/bin/true')`
  const modes =
    'mkdir d && install -m 755 /bin/true t && cp -a d e && tar c d | tar x && mkfifo p && chmod +t d && rm -r d'
  const refused = 'touch f && ! chmod u+s f && ! chmod g+s . && ! unshare -U true && ! mount -t tmpfs x /tmp'

  const programs: readonly (readonly [string, string])[] = [
    ['node with a worker, a child and interfaces', `node -e "${node.replaceAll('\n', ' ')}"`],
    ['npm', 'npm --version'],
    [
      'bun with a child and a server',
      `${bun} -e "Bun.spawnSync(['true']); Bun.serve({port:0,fetch(){return new Response('')}}).stop()"`,
    ],
    ['a C compiler and what it made', hello],
    ['git init, commit, gc and clone', git],
    ['copies, archives, pipes and modes', modes],
  ]
  for (const [name, script] of programs)
    onBwrap(`P12 ${name} works`, () => {
      const { status, stderr } = inBwrap(['sh', '-ec', script], { filter: { exec: 'any' } }, BUN_MOUNT)
      expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
    })

  onBwrap('P12 the same tools are refused what the filter blocks', () => {
    const { status, stderr } = inBwrap(['sh', '-ec', refused], { filter: { exec: 'any' } })
    expect({ status, stderr: status === 0 ? '' : stderr }).toEqual({ status: 0, stderr: '' })
  })
})
