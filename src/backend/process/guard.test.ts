import { afterEach, expect, test } from 'bun:test'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { skipUnless } from '../../../test/skip.ts'
import { signal } from '../../base/kernel/end-processes.ts'
import { childrenOf } from '../../base/kernel/processes.ts'
import { bwrapFds, FD, type Guard, startGuard } from './guard.ts'
import { endInit } from './init.ts'
import { BwrapStatus } from './status.ts'

const dir = realpathSync(mkdtempSync(join(tmpdir(), 'pen-guard-')))
afterEach(() => {
  for (const name of ['record', 'begun']) rmSync(`${dir}/${name}`, { force: true })
})

function guardOf(argv: readonly string[], witness: number, nothing: number): Guard {
  return startGuard({
    shell: '/bin/sh',
    argv,
    stdio: [nothing, nothing, nothing],
    argsFd: nothing,
    seccompFd: nothing,
    joinFds: [],
    extraFds: [],
    layerFd: undefined,
    witnessFd: witness,
    limits: { files: 256 },
    env: { PATH: process.env['PATH'] ?? '' },
    identity: undefined,
  })
}

/** Ends pen's side of the guard. `bwrap` stands for bubblewrap: its child is the sandbox's init. */
async function afterKill(bwrap: string, isDone: (record: string) => boolean, ms: number): Promise<string> {
  const [witness, nothing] = [openSync(`${dir}/record`, 'a'), openSync('/dev/null', 'r+')]
  const guard = guardOf(['/bin/sh', '-c', bwrap], witness, nothing)
  guard.go()
  await Bun.sleep(200)
  guard.close()
  const record = (): string => readFileSync(`${dir}/record`, 'utf8')
  for (const end = performance.now() + ms; performance.now() < end && !isDone(record()); ) await Bun.sleep(10)
  for (const fd of [witness, nothing]) closeSync(fd)
  return record()
}

test('the guard of a killed pen says when the sandbox had ended', async () => {
  const line = await afterKill('sleep 60 & wait', record => record !== '', 3000)
  const uptime = Number.parseFloat(readFileSync('/proc/uptime', 'latin1'))
  expect(line).toMatch(/^ended [\d.]+\n$/)
  expect(Math.abs(Number(line.slice('ended '.length)) - uptime)).toBeLessThan(3)
})

test('a first process that is still a zombie has ended', async () => {
  // This bubblewrap never collects its child.
  expect(await afterKill('sleep 60 & exec sleep 61', record => record !== '', 3000)).toMatch(
    /^ended [\d.]+\n$/,
  )
})

/** Without --die-with-parent, so that the sandbox outlives bubblewrap. True when its command began. */
async function hasBegun(act: (guard: Guard) => void): Promise<boolean> {
  const { block, hold } = bwrapFds(0)
  const view = ['--bind', '/', '/', '--unshare-user', '--unshare-pid', '--new-session']
  const wiring = ['--json-status-fd', FD.status, '--block-fd', block, '--sync-fd', hold].map(String)
  const [witness, nothing] = [openSync(`${dir}/record`, 'a'), openSync('/dev/null', 'r+')]
  const guard = guardOf(['bwrap', ...view, ...wiring, 'touch', `${dir}/begun`], witness, nothing)
  guard.go()
  const init = new BwrapStatus(guard.statusFd).initPid() ?? 0
  try {
    await Bun.sleep(300)
    act(guard)
    for (let i = 0; i < 100 && !existsSync(`${dir}/begun`); i++) await Bun.sleep(10)
    return existsSync(`${dir}/begun`)
  } finally {
    if (init > 0) await endInit(init)
    signal(-guard.pid, 'SIGKILL')
    guard.close()
    for (const fd of [witness, nothing]) closeSync(fd)
  }
}

skipUnless(Bun.which('bwrap') !== null, 'bubblewrap is missing')(
  'a sandbox that outlives pen and its guard never begins its command; one that pen unblocks does',
  async () => {
    const killed = await hasBegun(guard => {
      for (const pid of [...childrenOf(guard.pid), guard.pid]) signal(pid, 'SIGKILL')
      guard.close()
    })
    expect([killed, await hasBegun(guard => guard.unblock())]).toEqual([false, true])
  },
)
