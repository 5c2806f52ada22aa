import { describe, expect, test } from 'bun:test'
import { kernelRelease } from '../../../base/kernel/kernel-facts.ts'
import { refuseForeign } from '../backends.ts'
import { interpreterOf, parseList } from '../guest-program.ts'
import { hardLimits } from '../shape.ts'
import { engineError, findEngine, reasonOf } from './engine.ts'
import { ofDocker, ofPodman } from './engine-facts.ts'
import { isRuntimeFailure } from './runtimes.ts'

const said = (stderr: string) => ({
  code: 125,
  signal: null,
  stdout: '',
  stderr,
  ended: 'exit' as const,
})

describe('an engine', () => {
  test('gets only the variables that locate its storage and its daemon', () => {
    const env = {
      HOME: '/h',
      AWS_SECRET: 'x',
      http_proxy: 'http://p.example',
      CONTAINER_HOST: 'ssh://x.example',
      CONTAINERS_CONF: '/c',
    }
    const engine = findEngine('podman', env)
    if (engine === undefined) return // Not installed here. test/containers reports that.
    expect(new Set(Object.keys(engine.env))).toEqual(new Set(['CONTAINERS_CONF', 'HOME', 'LC_ALL', 'PATH']))
  })

  test('a daemon elsewhere is refused', () => {
    const find = (host: string) => () => findEngine('docker', { DOCKER_HOST: host })
    if (findEngine('docker', {}) === undefined) return
    expect(find('tcp://192.0.2.1:2375')).toThrow('only with a Docker daemon of this machine')
    expect(find('ssh://host.example')).toThrow('only with a Docker daemon of this machine')
    expect(find('unix:///run/d.sock')()?.flags).toEqual(['--host', 'unix:///run/d.sock'])
  })

  test('its last line is the reason, escaped, with a fix', () => {
    const answer = said('WARN[0000] old news\nError: crun: no cgroups\u001b[2J: OCI runtime error\n')
    const engine = {
      name: 'podman',
      daemon: false,
      program: '/usr/bin/podman',
      localPrefix: 'localhost/',
      certificates: '',
      flags: [],
      env: {},
    } as const
    const { message, hint } = engineError(engine, answer)
    expect(message).toBe('podman failed: crun: no cgroups\\u001b[2J: OCI runtime error')
    expect(hint).toContain('runtime')
    expect(reasonOf({ ...answer, ended: 'timeout' })).toBe('it did not answer in time')
    expect(reasonOf(said(''))).toBe('it ended with 125')
    expect(reasonOf({ ...said(''), code: null })).toBe('it was killed')
    const conflict = 'Conflict. The container name "/pen-x" is already in use'
    for (const advice of ["See 'docker run --help'.", "\nRun 'docker run --help' for more information"])
      expect(reasonOf(said(`docker: Error response from daemon: ${conflict}\n${advice}\n`))).toBe(conflict)
  })

  test.each([
    ['Error: OCI runtime error: crun: cgroups in hybrid mode not supported', true],
    ['Error: runc: runc create failed: unable to start container process', true],
    ['Error: the container name "pen-x" is already in use', false],
    ['Error: localhost/x: image not known', false],
  ])('%j blames the runtime: %p', (line, blames) => {
    expect(isRuntimeFailure(said(line))).toBe(blames)
  })
})

describe('what an engine says of itself', () => {
  test('podman without root on cgroups of version 1 holds nothing', () => {
    const info = {
      version: { Version: '4.3.1' },
      host: { cgroupControllers: [], security: { rootless: true }, ociRuntime: { name: 'crun' } },
      store: { graphRoot: '/home/u/storage', graphDriverName: 'vfs' },
    }
    const facts = {
      version: '4.3.1',
      rootless: true,
      mapped: false,
      here: true,
      runtime: 'crun',
      held: [],
      storage: '/home/u/storage',
      driver: 'vfs',
    }
    expect(ofPodman(info)).toEqual(facts)
  })

  test('podman of root holds what the kernel gives', () => {
    const info = {
      version: { Version: '5.4.0' },
      host: {
        cgroupControllers: ['cpu', 'io', 'memory', 'pids'],
        security: { rootless: false },
        ociRuntime: { name: 'runc' },
      },
      store: {},
    }
    expect(ofPodman(info).held).toEqual(['memory', 'pids', 'cpus'])
  })

  test('a Docker client whose daemon does not answer is not an engine', () => {
    const info = { ServerVersion: '28.0.0', DefaultRuntime: 'runc', MemoryLimit: true, PidsLimit: true }
    expect(ofDocker({ ...info, CpuCfsQuota: true }).held).toEqual(['memory', 'pids', 'cpus'])
    expect(ofDocker(info).held).toEqual(['memory', 'pids'])
    expect(() => ofDocker({ ...info, ServerErrors: ['Cannot connect'] })).toThrow('Cannot connect')
    expect(() => ofDocker({ ServerVersion: '' })).toThrow('no daemon')
  })

  test.each([
    [['name=seccomp,profile=default'], false, false],
    [['name=seccomp,profile=default', 'name=rootless'], true, false],
    [['name=apparmor', 'name=userns'], false, true],
  ])('a Docker daemon with %j: without root %p, with other ids %p', (SecurityOptions, rootless, mapped) => {
    const info = { ServerVersion: '28.0.0', DefaultRuntime: 'runc', KernelVersion: kernelRelease() }
    const facts = ofDocker({ ...info, SecurityOptions })
    expect(facts).toMatchObject({ rootless, mapped })
    if (rootless || mapped) expect(() => refuseForeign(facts)).toThrow('would not be yours')
    else expect(() => refuseForeign(facts)).not.toThrow()
    const elsewhere = ofDocker({ ...info, KernelVersion: '6.12.5-linuxkit', SecurityOptions })
    expect(() => refuseForeign(elsewhere)).toThrow('another machine')
  })
})

test('hard limits are those of the second column', () => {
  const text =
    'Limit                     Soft Limit           Hard Limit           Units     \n' +
    'Max core file size        0                    unlimited            bytes     \n' +
    'Max processes             100                  200                  processes \n' +
    'Max open files            1024                 4096                 files     \n'
  expect(hardLimits(text)).toEqual({ nofile: 4096, nproc: 200, core: Number.POSITIVE_INFINITY })
})

describe('the loader of a program', () => {
  test('is the one that it names', () => {
    expect(interpreterOf(process.execPath)).toMatch(/^\/lib.*\/ld-/)
  })

  test('lists libraries by the names under which the loader looks for them', () => {
    const list =
      '\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x00007f80)\n\t/lib64/ld-linux.so.2 (0x00007f81)\n\tlibgone.so.1 => not found\n'
    expect(parseList(list)).toEqual([{ name: 'libc.so.6', path: '/lib/x/libc.so.6' }])
  })
})
