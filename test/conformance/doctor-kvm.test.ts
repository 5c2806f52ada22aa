/** The doctor reports of KVM what a program without pen sees, for every user, and without the device. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { skipUnless } from '../skip.ts'
import type { Box } from './box.ts'
import { onLinux, onTheHost } from './conformance.ts'
import { type Asked, doctor, failing, inPrivate } from './doctor.ts'
import { isRoot } from './launcher.ts'

const onX64 = process.arch === 'x64' ? onLinux : skipUnless(false, 'the guest of this test is for x86-64')

const SAID = {
  absent: /^\/dev\/kvm is missing$/,
  forbidden: /^no permission to open \/dev\/kvm$/,
  creates: /^KVM creates virtual machines but does not run them/,
  runs: /^KVM ran a guest$/,
} as const

/** Runs its own guest that computes with floating-point numbers: an emulated CPU would not do that. */
function tryWithoutPen(box: Box, change: string): keyof typeof SAID {
  const words = [...box.launcher.who.become, '/usr/bin/python3', `${import.meta.dirname}/kvm.py`]
  const [program, ...rest] = inPrivate(box, words, change)
  const { stdout, stderr } = spawnSync(program, rest, { encoding: 'utf8', timeout: 30_000 })
  const word = stdout.trim()
  if (!Object.hasOwn(SAID, word)) throw new Error(`${word} ${stderr}`)
  return word as keyof typeof SAID
}

function agrees(box: Box, change = ''): [keyof typeof SAID, Asked] {
  const seen = tryWithoutPen(box, change)
  const asked = doctor(box, change)
  const found = asked.of('kvm')
  expect([seen, found?.what]).toEqual([seen, expect.stringMatching(SAID[seen])])
  // Whatever the result, pen run works without KVM.
  expect([asked.code, failing(asked), found?.status]).toEqual([0, [], seen === 'runs' ? 'ok' : 'weak'])
  expect([seen, (found?.fix ?? '') !== '']).toEqual([seen, seen !== 'runs'])
  return [seen, asked]
}

onTheHost(
  'P20 the doctor runs a guest by KVM, and reports what a program without pen sees',
  async box => {
    agrees(box)
  },
  { define: onX64 },
)

/** Another `/dev`, with everything usual except this device. */
const WITHOUT_KVM = `mount -t tmpfs -o mode=755 none /mnt; mkdir /mnt/pts /mnt/shm /mnt/mqueue
for one in null zero full random urandom tty ptmx; do : > /mnt/$one; mount --bind /dev/$one /mnt/$one; done
for link in fd stdin stdout stderr; do cp -P /dev/$link /mnt/; done
mount --rbind /dev/pts /mnt/pts; chmod 1777 /mnt/shm; mount --move /mnt /dev`

onTheHost(
  'P20 without /dev/kvm the doctor says so, and how to get it',
  async box => {
    const [seen, asked] = agrees(box, WITHOUT_KVM)
    expect([seen, asked.of('kvm')?.fix]).toEqual([
      'absent',
      expect.stringMatching(/modprobe|nested virtualization|firmware|--device/),
    ])
  },
  { only: () => isRoot, define: onX64 },
)
