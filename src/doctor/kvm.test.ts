import { describe, expect, test } from 'bun:test'
import { parseOsRelease } from './distribution.ts'
import { type Trial, tryGuest } from './guest.ts'
import { type HostFacts, judgeKvm } from './kvm.ts'

const debian = parseOsRelease('ID=debian\nPRETTY_NAME="Debian 12"')
const alpine = parseOsRelease('ID=alpine')
const judge = (tried: Trial | undefined, around: Partial<HostFacts> = {}, system = debian) =>
  judgeKvm(
    tried,
    { arch: 'x64', features: new Set(), isContainer: false, group: 'kvm', uid: 1000, ...around },
    system,
  )
const at = (step: Trial['at'], errno?: string): Trial => ({ at: step, errno })
const has = (...features: string[]) => ({ features: new Set(features) })

describe('the trial', () => {
  test('fails if the device is missing or no KVM device', () => {
    expect(tryGuest('/nonexistent/kvm')).toEqual({ at: 'open', errno: 'ENOENT' })
    expect(tryGuest('/dev/null')).toEqual({ at: 'create', errno: '25' })
  })
})

describe('KVM', () => {
  test('is ok if a guest ran', () => {
    expect(judge(at('ran')).status).toBe('ok')
    const arm = judge(at('processor'), { arch: 'arm64' })
    expect([arm.status, arm.why]).toEqual(['ok', expect.stringContaining('is not checked on arm64')])
  })

  test.each([
    [at('open', 'ENOENT'), has('vmx'), /\/dev\/kvm is missing/, /modprobe kvm_intel$/],
    [at('open', 'ENOENT'), has('svm'), /\/dev\/kvm is missing/, /modprobe kvm_amd$/],
    [at('open', 'ENOENT'), has('hypervisor'), /\/dev\/kvm is missing/, /nested virtualization/],
    [at('open', 'ENOENT'), {}, /\/dev\/kvm is missing/, /firmware/],
    [at('open', 'ENOENT'), { isContainer: true }, /\/dev\/kvm is missing/, /--device \/dev\/kvm/],
    [at('open', 'EACCES'), {}, /no permission to open/, /^sudo usermod -aG kvm "\$USER", then log in again$/],
    [at('open', 'EACCES'), { group: undefined }, /no permission to open/, /chgrp kvm .*usermod -aG kvm/],
    [at('open', 'EPERM'), { uid: 0, isContainer: true }, /no permission to open/, /--device \/dev\/kvm/],
    [at('create', '16'), has('vmx'), /creates no virtual machine/, /other hypervisor/],
    [at('create', '25'), has('vmx'), /creates no virtual machine \(errno 25\)/, /modprobe/],
    [at('run'), has('hypervisor'), /does not run them/, /nested virtualization.*physical machine/],
    [at('run', '5'), {}, /does not run them: errno 5/, /dmesg/],
    [undefined, {}, /did not return/, /dmesg/],
  ])('that ended at %p with %p is weak, and says what to do', (tried, around, what, fix) => {
    const found = judge(tried, around)
    expect([found.status, found.what, found.fix]).toEqual([
      'weak',
      expect.stringMatching(what),
      expect.stringMatching(fix),
    ])
    expect(found.why).toContain('only isolation "vm" uses KVM')
  })

  test('has a fix for the distribution', () => {
    expect(judge(at('open', 'EACCES'), {}, alpine).fix).toStartWith('sudo addgroup "$USER" kvm')
  })
})
