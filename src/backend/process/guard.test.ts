import { afterEach, expect, test } from 'bun:test'
import { closeSync, mkdtempSync, openSync, readFileSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startGuard } from './guard.ts'

const dir = realpathSync(mkdtempSync(join(tmpdir(), 'pen-guard-')))
afterEach(() => rmSync(`${dir}/record`, { force: true }))

/** Ends pen's side of the guard. `bwrap` stands for bubblewrap: its child is the sandbox's init. */
async function afterKill(bwrap: string, isDone: (record: string) => boolean, ms: number): Promise<string> {
  const [witness, nothing] = [openSync(`${dir}/record`, 'a'), openSync('/dev/null', 'r+')]
  const guard = startGuard({
    shell: '/bin/sh',
    argv: ['/bin/sh', '-c', bwrap],
    stdio: [nothing, nothing, nothing],
    argsFd: nothing,
    seccompFd: nothing,
    joinFds: [],
    extraFds: [],
    witnessFd: witness,
    limits: { files: 256 },
    env: { PATH: process.env['PATH'] ?? '' },
    identity: undefined,
  })
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

test('a first process that nobody has collected yet has ended', async () => {
  // This bubblewrap never collects its child.
  expect(await afterKill('sleep 60 & exec sleep 61', record => record !== '', 3000)).toMatch(
    /^ended [\d.]+\n$/,
  )
})
