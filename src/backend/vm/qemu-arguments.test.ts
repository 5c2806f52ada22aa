import { describe, expect, test } from 'bun:test'
import type { Bytes, Millis } from '../../base/quantity.ts'
import type { Plan } from '../../plan/plan.ts'
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
  daemon: '/files/daemon',
  descriptors: { tree: 9, project: 10, orders: 11, monitor: 12, memory: 13 },
  boot: 'cold',
  cpus: 2,
}
const words = (change: Partial<Machine> = {}, network: Plan['network'] = { kind: 'gateway' }): string =>
  qemuArguments({ ...machine, ...change }, { limits, network }).join(' ')

describe('the command line of QEMU', () => {
  test('has no default device, no disk but a read-only one, no new programs, and a monitor only by descriptor', () => {
    expect(words()).toContain('-nodefaults -no-user-config -no-reboot')
    expect(words()).toContain('spawn=deny')
    expect(words()).not.toMatch(/-(monitor|qmp|hda|virtfs) /)
    expect(words().match(/-drive \S+/g)).toEqual([
      '-drive if=none,id=daemon,file=/files/daemon,format=raw,readonly=on',
    ])
    expect(words().match(/-mon \S+/g)).toEqual(['-mon chardev=monitor,mode=control'])
    expect(words()).toContain('-chardev socket,id=monitor,fd=12 ')
  })

  test('names sockets by descriptor, and no path of the host', () => {
    for (const socket of ['id=tree,fd=9', 'id=project,fd=10', 'id=orders,fd=11'])
      expect(words()).toContain(`-chardev socket,${socket} `)
    const paths = words().match(/(?<=[ =])\/[^\s,]+/g)
    expect(paths).toEqual(['/proc/self/fd/13', '/files/vmlinuz', '/files/initramfs', '/files/daemon'])
  })

  test('is the same for every project, and a restored machine waits for its state', () => {
    expect(words({ boot: 'restored' })).toBe(`${words()} -incoming defer`)
  })

  test('has a network card only for a sandbox with a gateway', () => {
    expect(words()).toContain('-netdev user,id=net')
    expect(words()).toContain('PEN_NETWORK=1')
    expect(words({}, { kind: 'none', why: 'offline' })).not.toContain('-netdev')
  })

  test('gives the guest the memory and vCPUs of the limits', () => {
    expect(words()).toContain('-smp 2 -m 1024M')
    expect(words()).toContain('size=1024M,share=on')
  })

  test('spares the kernel its slow measurement only where QEMU translates', () => {
    expect(words()).toContain(' lpj=')
    expect(words({ accelerator: 'kvm' })).not.toContain(' lpj=')
  })

  test('of a trial has neither files nor orders', () => {
    const trial = words({ descriptors: undefined, accelerator: 'kvm' })
    expect(trial).toContain('-accel kvm -cpu host')
    expect(trial).toContain('PEN_TRIAL=1')
    expect(trial).not.toMatch(/vhost-user|virtserialport|-mon|-drive/)
  })
})
