import { describe, expect, test } from 'bun:test'
import { PenError } from '../../base/error.ts'
import {
  type ContainerOrder,
  DAEMON_CAPABILITIES,
  mountField,
  ROOT_HELPER_CAPABILITIES,
  runArguments,
} from './arguments.ts'

const ORDER: ContainerOrder = {
  engine: 'podman',
  rootless: false,
  runtime: undefined,
  runtimeFlags: [],
  capabilities: DAEMON_CAPABILITIES,
  helper: false,
  verb: 'run',
  name: 'pen-project-0123456789abcdef',
  image: 'sha256:feed',
  hostname: 'pen',
  labels: { pen: '1', 'pen.run': 'r1' },
  user: { uid: 1000, gid: 1000 },
  network: 'none',
  limits: { memory: 1024, pids: 10, cpus: 1.5 },
  ulimits: { nofile: 64, nproc: 32, core: 1 },
  scratch: [{ at: '/tmp', size: 4096, mode: 0o1777 }],
  binds: [{ from: '/p', at: '/p', mode: 'rw' }],
  env: { AGENT_IN_SANDBOX: '1' },
  idFile: '/state/id',
  pidFile: '/state/pid',
  selinux: false,
  argv: ['/run/pen/pen', '__exec-daemon'],
}

const words = (more: Partial<ContainerOrder> = {}) => runArguments({ ...ORDER, ...more })

describe('the arguments of an engine', () => {
  test('podman, whole', () => {
    expect(words()).toEqual([
      ...['run', '--detach', '--rm', '--pull=never', '--name=pen-project-0123456789abcdef'],
      ...[
        '--cidfile=/state/id',
        '--label=pen=1',
        '--label=pen.run=r1',
        '--hostname=pen',
        '--read-only',
        '--cap-drop=ALL',
      ],
      ...['--cap-add=CHOWN', '--cap-add=KILL', '--cap-add=SETGID', '--cap-add=SETUID', '--cap-add=SETPCAP'],
      ...['--security-opt=no-new-privileges', '--network=none', '--ipc=none', '--cgroupns=private'],
      ...['--memory=1024', '--memory-swap=1024', '--pids-limit=10', '--cpus=1.5'],
      ...['--ulimit=nofile=64:64', '--ulimit=nproc=32:32', '--ulimit=core=1:1'],
      ...['--user=0:0', '--workdir=/', '--log-driver=none', '--env=AGENT_IN_SANDBOX=1'],
      ...['--tmpfs', '/tmp:rw,exec,nosuid,nodev,size=4096,mode=1777,notmpcopyup'],
      ...['--mount', 'type=bind,source=/p,target=/p'],
      ...['--pidfile=/state/pid', '--read-only-tmpfs=false', '--no-hosts', '--passwd=false'],
      ...['--http-proxy=false', '--no-healthcheck', '--sdnotify=ignore', '--image-volume=ignore'],
      ...['--entrypoint=/run/pen/pen', 'sha256:feed', '__exec-daemon'],
    ])
  })

  test('docker gets no flag that only podman has', () => {
    const docker = words({ engine: 'docker', runtime: 'runsc' })
    expect(docker).toContain('--runtime=runsc')
    expect(docker.filter(word => /pidfile|passwd|userns|tmpcopyup|image-volume/.test(word))).toEqual([])
    expect(docker[0]).toBe('run')
  })

  test('podman’s runtime comes before the verb', () => {
    expect(words({ runtime: 'runc' }).slice(0, 3)).toEqual(['--runtime', 'runc', 'run'])
  })

  test('an order to create says so, and the runtime’s flags come before the verb', () => {
    const made = words({ runtime: 'runsc', runtimeFlags: ['network=host'], verb: 'create' })
    expect(made.slice(0, 6)).toEqual([
      '--runtime',
      'runsc',
      '--runtime-flag',
      'network=host',
      'create',
      '--rm',
    ])
  })

  test('without root the user keeps its id, under the name that it was configured with', () => {
    expect(words({ rootless: true, user: { uid: 7, gid: 8 } })).toContain('--userns=keep-id:uid=7,gid=8')
    expect(words().some(word => word.startsWith('--userns'))).toBe(false)
  })

  test('a limit that the engine cannot enforce is not set', () => {
    expect(words({ limits: {} }).filter(word => /memory|pids|cpus/.test(word))).toEqual([])
  })

  test('only the open network replaces network none', () => {
    expect(words({ network: 'bridge' })).toContain('--network=bridge')
    expect(words({ network: 'bridge', rootless: true }).some(word => word.startsWith('--network'))).toBe(
      false,
    )
  })

  test('only the root helper sees the host’s processes and may mount, with the capabilities it needs', () => {
    const helper = words({ engine: 'docker', helper: true, capabilities: ROOT_HELPER_CAPABILITIES })
    expect(helper.filter(word => /=host\b|unconfined|privileged/.test(word))).toEqual([
      '--pid=host',
      '--cgroupns=host',
      '--security-opt=apparmor=unconfined',
      '--security-opt=seccomp=unconfined',
    ])
    expect(helper).toContain('--cap-drop=ALL')
    expect(helper).toContain('--network=none')
    expect(words({ engine: 'docker' }).filter(word => /cap-add/.test(word))).toEqual(
      DAEMON_CAPABILITIES.map(name => `--cap-add=${name}`),
    )
  })

  test('a sandbox never gets an engine’s socket, a privilege or a namespace of the host', () => {
    const all = [words(), words({ engine: 'docker' }), words({ rootless: true })].flat()
    expect(all.filter(word => /docker\.sock|podman\.sock|privileged|=host\b|unconfined/.test(word))).toEqual(
      [],
    )
  })
})

describe('a mount for an engine', () => {
  test.each([
    ['/plain', 'source=/plain'],
    ['/a b:c=d', 'source=/a b:c=d'],
    ['/a,readonly', '"source=/a,readonly"'],
    ['/a"b', '"source=/a""b"'],
    ['/a\nb', '"source=/a\nb"'],
    ['/ä ö ', '"source=/ä ö "'],
  ])('%j is quoted so that it stays one field', (path, field) => {
    expect(mountField(['type=bind', ['source', path]])).toBe(`type=bind,${field}`)
  })

  test('a carriage return, which engines drop, is refused', () => {
    expect(() => mountField([['source', '/a\r\nb']])).toThrow(PenError)
  })
})
