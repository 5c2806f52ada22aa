/** What isolation "vm" needs: QEMU, prepared files, and a guest that runs. Nothing is fetched or installed. */
import { mkdirSync, symlinkSync } from 'node:fs'
import { areGuestFilesPrepared } from '../backend/vm/guest-files.ts'
import { QEMU, QEMU_PACKAGE } from '../backend/vm/vm.ts'
import { findTool } from '../base/find-tool.ts'
import { ownProgram } from '../base/own-program.ts'
import { capture } from '../base/spawn.ts'
import { installLine, installWords } from './distribution.ts'
import { type Machine, ok, type Results, weak } from './finding.ts'
import { errorIn } from './sandbox.ts'

/** A guest without KVM, on a busy machine. */
const TIME_LIMIT_MS = 25_000
const PREPARE = ['build', '--isolation', 'vm'] as const

/** Only isolation "vm" needs any of it: what is not set up is not a weakness. */
export async function checkVm({ distribution, state, scratch, env }: Machine): Promise<Results> {
  if (findTool(QEMU) === undefined)
    return {
      id: 'vm-qemu',
      ...ok('isolation "vm" is not set up: QEMU is not installed'),
      fix: installLine(distribution, QEMU_PACKAGE),
      does: installWords(distribution, QEMU_PACKAGE),
    }
  const cache = `${state}/cache`
  if (!areGuestFilesPrepared(cache))
    return {
      id: 'vm-files',
      ...ok('isolation "vm" is not set up: its kernel and virtiofsd are not prepared'),
      fix: `pen ${PREPARE.join(' ')}`,
      does: [...ownProgram(), ...PREPARE],
    }
  const files = { id: 'vm-files', ...ok(`kernel, BusyBox and virtiofsd are in ${cache}/vm, and unchanged`) }
  if (scratch === undefined) return files
  const home = `${scratch}/vm-home`
  const project = `${scratch}/vm-project`
  for (const dir of [`${home}/.pen`, project]) mkdirSync(dir, { recursive: true, mode: 0o700 })
  symlinkSync(cache, `${home}/.pen/cache`)
  const began = performance.now()
  const { code, stderr, ended } = await capture(
    [...ownProgram(), 'run', '--json', '--isolation', 'vm', '--', 'true'],
    {
      env: { HOME: home, PATH: env['PATH'] ?? '/usr/bin:/bin', TERM: 'dumb' },
      cwd: project,
      timeoutMs: TIME_LIMIT_MS,
      maxOutput: 256 * 1024,
    },
  )
  const run = 'PEN_DEBUG=1 pen run --isolation vm -- true'
  if (ended === 'timeout') return [files, { id: 'vm-run', ...weak('a virtual machine timed out', ONLY, run) }]
  if (code === 0) {
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    return [
      files,
      { id: 'vm-run', ...ok(`a virtual machine started, ran a command and ended in ${seconds} s`) },
    ]
  }
  const { what, hint } = errorIn(stderr)
  return [files, { id: 'vm-run', ...weak('a virtual machine did not run', `${what}; ${ONLY}`, hint ?? run) }]
}

const ONLY = 'only isolation "vm" needs it'
