/** What the supervisor orders from QEMU over its monitor. */
import type { Monitor } from './monitor.ts'
import { SLOTS } from './qemu-arguments.ts'

/** The memory is a file of its own, so the state of a snapshot leaves it out. */
export async function openMonitor(monitor: Monitor): Promise<void> {
  await monitor.command('qmp_capabilities')
  const capabilities = [{ capability: 'x-ignore-shared', state: true }]
  await monitor.command('migrate-set-capabilities', { capabilities })
}

/** Stops the guest and writes the state of its devices. */
export async function writeState(monitor: Monitor, state: number): Promise<void> {
  await monitor.command('getfd', { fdname: 'state' }, state)
  await monitor.command('migrate', { uri: 'fd:state' })
  await migrated(monitor)
}

async function migrated(monitor: Monitor): Promise<void> {
  for (;;) {
    const { status } = (await monitor.command('query-migrate')) as { readonly status?: string }
    if (status === 'completed') return
    if (status === 'failed' || status === 'cancelled') throw new Error('QEMU could not write its state')
    await Bun.sleep(5)
  }
}

/** Plugs in the files of both servers. */
export async function attachFiles(monitor: Monitor): Promise<void> {
  for (const [chardev, bus] of Object.entries(SLOTS))
    await monitor.command('device_add', {
      driver: 'vhost-user-fs-pci',
      id: `${chardev}-files`,
      bus,
      chardev,
      tag: chardev,
      'queue-size': 1024,
    })
}
