/** What the doctor reports of programs and services of the machine that are old, slow, or in the way. */
import { expect } from 'bun:test'
import { Stopwatch } from '../stopwatch.ts'
import { onTheHost } from './conformance.ts'
import { agrees, doctor, failing, missing, NOBODY, program } from './doctor.ts'
import { isRoot } from './launcher.ts'

/** A mount namespace of the test needs root. What the doctor says of other programs is the same for every user. */
const asUser = { only: () => isRoot, users: 'ordinary' } as const

onTheHost(
  'P20 the doctor and pen run agree on every program that pen starts, whichever is missing',
  async box => {
    for (const name of ['unshare', 'nsenter', 'prlimit', 'setpriv', 'setsid', 'cat']) {
      // The test itself uses setpriv to become the user.
      if (name === 'setpriv' && box.launcher.who.become.length > 0) continue
      const asked = agrees(box, missing(`/usr/bin/${name}`))
      expect([name, asked.of(`tool-${name}`)?.status]).not.toEqual([name, 'ok'])
      expect([name, asked.of(`tool-${name}`)?.fix]).toEqual([name, expect.stringContaining('install')])
    }
  },
  { only: () => isRoot },
)

onTheHost(
  'P20 an engine with a known escape is weak, its successor is fine, and pen run works with both',
  async box => {
    const old = doctor(box, program('podman', 'echo podman version 4.3.1'))
    expect([old.code, old.of('engine-podman')?.status]).toEqual([0, 'weak'])
    expect(old.of('engine-podman')?.why).toMatch(
      /CVE-2026-55686.*pen run without a container is not affected/,
    )
    expect(doctor(box, program('podman', 'echo podman version 4.3.1'), ['--strict']).code).toBe(1)
    const mended = doctor(box, program('podman', 'echo podman version 5.7.1'))
    expect(mended.of('engine-podman')?.status).toBe('ok')
    const hostile = doctor(box, program('podman', 'printf "\\033[2J"; exit 3'))
    expect([hostile.code, hostile.of('engine-podman')?.status]).toEqual([0, 'weak'])
  },
  asUser,
)

onTheHost(
  'P20 a program that never answers costs a few seconds, and the doctor prints what it tries',
  async box => {
    const watch = new Stopwatch()
    const asked = doctor(box, program('docker', 'exec sleep 60'))
    expect([asked.code, failing(asked)]).toEqual([0, []])
    expect(watch.ms).toBeLessThan(12_000)
    expect(asked.of('engine-docker')?.why).toContain('prints no version')
    expect(asked.stderr).toContain('checking pen run …')
  },
  asUser,
)

onTheHost(
  'P20 name servers that do not answer are weak, and one that does is fine',
  async box => {
    const silent = doctor(box)
    expect([silent.code, silent.of('dns')?.status]).toEqual([0, 'weak'])
    expect(silent.of('dns')?.what).toContain(NOBODY)
    // In its own process, because this one waits for the doctor.
    const server = Bun.spawn([process.execPath, '-e', `(${serve.toString()})('${NOBODY}')`], {
      env: { BUN_BE_BUN: '1' },
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      await server.stdout.getReader().read()
      const answering = doctor(box)
      expect(answering.of('dns')?.status).toBe('ok')
      expect(answering.of('port-53')?.what).toContain('port 53 is used by')
    } finally {
      server.kill('SIGKILL')
      await server.exited
    }
  },
  asUser,
)

/** Answers every query with NXDOMAIN. */
function serve(at: string): void {
  const socket = process.getBuiltinModule('node:dgram').createSocket('udp4')
  socket.on('message', (query, from) => {
    query.writeUInt16BE(0x8183, 2)
    socket.send(query, from.port, from.address)
  })
  socket.bind(53, at, () => console.log('ready'))
}
