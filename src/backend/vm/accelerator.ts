/**
 * Whether a guest runs on KVM here. A machine may have `/dev/kvm`, make virtual machines and run none, so pen boots a
 * guest that says one word and ends. The answer is cached until QEMU, the kernel or the device changes.
 */
import { accessSync, constants, statSync } from 'node:fs'
import { cachedFact } from '../../base/fact-cache.ts'
import { kernelRelease } from '../../base/kernel/kernel-facts.ts'
import { phase } from '../../base/phases.ts'
import { ALIVE } from './initramfs.ts'
import { KVM, type MachineOptions, startMachine } from './machine.ts'
import type { Accelerator } from './qemu-arguments.ts'

/** KVM boots in less than a second. */
const TRIAL_MS = 15_000

export async function chooseAccelerator(
  machine: Omit<MachineOptions, 'accelerator' | 'descriptors' | 'state'>,
): Promise<Accelerator> {
  const { plan, qemu, files, options } = machine
  // Root becomes another user, who may not open the device.
  if (plan.runAs !== 'self' || !mayOpen(KVM)) return 'tcg'
  const key = JSON.stringify([kernelRelease(), files.initramfs, ...[qemu, KVM].map(stampOf)])
  return await cachedFact(`${options.cacheDir}/accelerator.json`, key, async () =>
    (await boots(machine)) ? 'kvm' : 'tcg',
  )
}

async function boots(
  machine: Omit<MachineOptions, 'accelerator' | 'descriptors' | 'state'>,
): Promise<boolean> {
  const { options } = machine
  const placement = {
    ...options.placement,
    wrap: [],
    env: {},
    within: <T>(spawn: () => T) => spawn(),
    hasDoor: false,
  }
  try {
    const { running, console, errors } = await startMachine({
      ...machine,
      options: { ...options, placement },
      plan: { ...machine.plan, network: { kind: 'none', why: 'a trial' } },
      accelerator: 'kvm',
      descriptors: undefined,
      state: undefined,
    })
    const timer = setTimeout(() => running.kill(), TRIAL_MS)
    running.begin({ record: () => undefined })
    await running.ended.finally(() => clearTimeout(timer))
    if (await console.said(ALIVE)) return true
    phase(`no KVM: ${await errors.lastLines(1)} ${await console.lastLines(1)}`)
    return false
  } catch {
    return false
  }
}

function mayOpen(path: string): boolean {
  try {
    accessSync(path, constants.R_OK | constants.W_OK)
    return true
  } catch {
    return false
  }
}

function stampOf(path: string): readonly (string | number)[] {
  const { dev, ino, rdev, mtimeMs } = statSync(path)
  return path === KVM ? [path, rdev] : [path, dev, ino, mtimeMs]
}
