import { describe, expect, test } from 'bun:test'
import { type BuildOrder, buildArguments } from './build-arguments.ts'

const order: BuildOrder = {
  dockerfile: '/state/build-1/Dockerfile',
  context: '/state/build-1/context',
  name: 'pen/p-1:2',
  labels: ['pen=1'],
  args: new Map([['A', '--network=host']]),
  network: { kind: 'namespace', pid: 7, hosts: '/h' },
  pull: false,
  cache: true,
  memory: 1024,
  cpus: 1.5,
  ulimits: { nofile: 64, nproc: 32 },
}
const podman = (change: Partial<BuildOrder> = {}) => buildArguments('podman', { ...order, ...change })
const docker = (change: Partial<BuildOrder> = {}) => buildArguments('docker', { ...order, ...change })

describe('the arguments of a build', () => {
  test('pull nothing and have only pen’s network, unless the user asks for it', () => {
    expect(podman()).toContain('--pull=never')
    expect(podman({ pull: true })).toContain('--pull=true')
    expect(docker()).toContain('--network=none')
    expect(docker()).not.toContain('--pull')
    expect(docker({ network: { kind: 'open' } })).toContain('--network=none')
    expect(docker({ network: { kind: 'container', id: 'c1' } })).toContain('--network=container:c1')
    expect(podman({ network: { kind: 'open' } }).some(word => word.startsWith('--network'))).toBe(false)
  })

  test('join the namespace of a process, and use its name server', () => {
    const words = podman()
    for (const word of [
      '--network=ns:/proc/7/ns/net',
      '--dns=127.0.0.1',
      '--no-hosts',
      '--volume=/h:/etc/hosts:ro',
    ])
      expect(words).toContain(word)
  })

  test('pass no proxy of the host', () => {
    expect(podman()).toContain('--http-proxy=false')
    expect(docker()).toContain('--build-arg=https_proxy=')
  })

  test('are one word each, whatever a value contains, and end with the context', () => {
    expect(podman()).toContain('--build-arg=A=--network=host')
    expect(podman().filter(word => word === '--network=host')).toEqual([])
    expect([podman().at(-1), docker().at(-1)]).toEqual([order.context, order.context])
  })

  test('bound memory, processors, files and processes', () => {
    for (const words of [podman(), docker()])
      for (const word of [
        '--memory=1024',
        '--memory-swap=1024',
        '--cpu-period=100000',
        '--cpu-quota=150000',
        '--ulimit=nofile=64:64',
        '--ulimit=nproc=32:32',
      ])
        expect(words).toContain(word)
    expect(podman({ memory: undefined }).some(word => word.startsWith('--memory'))).toBe(false)
  })
})
