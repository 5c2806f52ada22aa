import { describe, expect, test } from 'bun:test'
import type { Bytes, Millis } from '../../base/quantity.ts'
import type { Plan } from '../../plan/plan.ts'
import type { HostPath } from '../../policy/files/path.ts'
import { type Machine, qemuArguments } from './qemu-arguments.ts'

const GIB = 2 ** 30
const limits: Plan['limits'] = {
  cpus: 2,
  memory: GIB as Bytes,
  pids: 128,
  wall: 1000 as Millis,
  disk: GIB as Bytes,
  output: GIB as Bytes,
  files: 1024,
}
const machine: Machine = {
  qemu: '/usr/bin/qemu-system-x86_64',
  accelerator: 'tcg',
  kernel: '/files/vmlinuz',
  initramfs: '/files/initramfs',
  sockets: { tree: 9, project: 10, orders: 11 },
  cpus: 2,
}
const words = (change: Partial<Machine> = {}, network: Plan['network'] = { kind: 'gateway' }): string =>
  qemuArguments(
    { ...machine, ...change },
    { limits, network, workspace: '/home/me/project' as HostPath },
  ).join(' ')

describe('the command line of QEMU', () => {
  test('has no monitor, no default device, no disk and no new programs', () => {
    expect(words()).toContain('-nodefaults -no-user-config -no-reboot')
    expect(words()).toContain('spawn=deny')
    expect(words()).not.toMatch(/-(monitor|qmp|drive|hda|virtfs|mon) /)
  })

  test('names sockets by descriptor, and no path of the host but the project’s name', () => {
    for (const socket of ['id=pen,fd=9', 'id=project,fd=10', 'id=orders,fd=11'])
      expect(words()).toContain(`-chardev socket,${socket} `)
    const paths = words().match(/(?<=[ =])\/\S+/g)
    expect(paths).toEqual(['/files/vmlinuz', '/files/initramfs', '/home/me/project'])
  })

  test('has a network card only for a sandbox with a gateway', () => {
    expect(words()).toContain('-netdev user,id=net')
    expect(words()).toContain('PEN_NETWORK=1')
    expect(words({}, { kind: 'none', why: 'offline' })).not.toContain('-netdev')
  })

  test('gives the guest the memory, vCPUs, processes and descriptors of the limits', () => {
    expect(words()).toContain('-smp 2 -m 1024M')
    expect(words()).toContain('size=1024M,share=on')
    expect(words()).toContain('PEN_PROCESSES=128 PEN_FILES=1024')
  })

  test('of a trial has neither files nor orders', () => {
    const trial = words({ sockets: undefined, accelerator: 'kvm' })
    expect(trial).toContain('-accel kvm -cpu host')
    expect(trial).toContain('PEN_TRIAL=1')
    expect(trial).not.toMatch(/vhost-user|virtserialport/)
  })
})
