/**
 * Programs need no proxy in their SSH settings, so pen writes none. Settings of the user and of the sandbox
 * stay.
 */
import { expect } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { conformance } from './conformance.ts'
import { mounting } from './mounting.ts'

const MINE = 'Host git.example.com\n  Port 2222\n  IdentitiesOnly yes\n'

const SHOW = 'ssh -G git.example.com 2>/dev/null | grep -E "^(port|user|proxycommand|identitiesonly) "'
const words = (text: string): string[] => text.trim().split('\n').sort()

conformance('P2 the user’s SSH settings work inside and stay unchanged, and pen adds none', async box => {
  // The host's own settings are not mounted, so they are absent.
  box.file(join(box.home, '.ssh/config'), 'Host *\n  User anyone\n', 0o600)
  const bare = await box.sh(`ls -A ~/.ssh 2>/dev/null; ${SHOW}`)
  expect(words(bare.stdout)).toEqual(['identitiesonly no', 'port 22', 'user agent'])

  const settings = box.file(join(box.home, 'agent-ssh/config'), MINE, 0o600)
  mounting(box, { host: '~/agent-ssh', at: '/home/agent/.ssh', mode: 'ro' })
  const before = statSync(settings).mtimeMs
  const seen = await box.sh(
    `cat ~/.ssh/config; ls -A ~/.ssh; echo 'Host *' >> ~/.ssh/config || echo refused; ${SHOW}`,
  )
  expect(seen.stdout).toStartWith(`${MINE}config\nrefused\n`)
  expect(words(seen.stdout.slice(seen.stdout.indexOf('refused\n') + 8))).toEqual([
    'identitiesonly yes',
    'port 2222',
    'user agent',
  ])
  expect([readFileSync(settings, 'utf8'), statSync(settings).mtimeMs]).toEqual([MINE, before])
})

conformance('P5 SSH settings in a sandbox’s volume persist and grow from run to run', async box => {
  mounting(box, { volume: 'ssh', at: '/home/agent/.ssh' })
  expect(
    (await box.sh(`ls -A ~/.ssh; printf '${MINE.replaceAll('\n', '\\n')}' >> ~/.ssh/config`)).stdout,
  ).toBe('')
  const second = await box.sh(
    `printf 'Host *\\n  User later\\n' >> ~/.ssh/config; cat ~/.ssh/config; ${SHOW}`,
  )
  const [kept, shown] = [second.stdout.slice(0, MINE.length), second.stdout.split('User later\n')[1] ?? '']
  expect(kept).toBe(MINE)
  expect(words(shown)).toEqual(['identitiesonly yes', 'port 2222', 'user later'])
})
