/** A directory without permissions is unknown, not empty; and modes in the project belong to the user. */
import { expect } from 'bun:test'
import { chmodSync, existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { conformance } from './conformance.ts'

const mode = (path: string): string => (lstatSync(path).mode & 0o7777).toString(8)

conformance(
  'P3 files planted in a locked project are removed, and those from before the start stay',
  async box => {
    box.host('git init -q .; mkdir .claude; echo {} > .claude/settings.json')
    box.file('agent-permissions.json', '{"version":1}')
    box.file('.npmrc', 'mine')
    const before = box.listing(box.project)
    const { stderr } = await box.sh(
      `echo evil > .envrc; mkdir .claude/hooks; echo evil > .claude/hooks/x; chmod 000 .claude "$PWD"; sleep 0.7
      chmod 755 "$PWD" "$PWD/.claude"; sleep 0.7; echo evil > .mcp.json; chmod 000 "$PWD"; sleep 0.3`,
    )
    expect(mode(box.project)).toBe('0')
    expect(stderr).toContain('the top of the project is locked: chmod u+rwx')
    chmodSync(box.project, 0o755)
    expect(box.listing(box.project)).toEqual(before)
    expect(readFileSync(join(box.project, '.npmrc'), 'utf8')).toBe('mine')
    for (const name of ['.envrc', '.mcp.json', 'hooks']) expect(stderr).toContain(`${name} appeared`)
    for (const name of ['agent-permissions.json', '.npmrc', 'settings.json'])
      expect(stderr).not.toContain(`${name} appeared`)
  },
)

conformance(
  'P3 a denied path that pen cannot inspect stops the run; without the lock the same run starts',
  async box => {
    box.file('safe/key', 'SECRET')
    chmodSync(join(box.project, 'safe'), 0)
    const flags = ['--deny', 'safe/key']
    const locked = await box.sh('echo ran', { flags })
    expect([locked.code, locked.stdout]).toEqual([2, ''])
    expect(locked.stderr).toContain(`at ${box.project}/safe/key\n  fix: a directory on the way is locked`)
    chmodSync(join(box.project, 'safe'), 0o755)
    expect((await box.sh('cat safe/key; echo ran', { flags })).stdout).toBe('ran\n')
  },
  { only: ({ who }) => who.uid !== 0 },
)

conformance(
  'P5 a read-only project keeps its modes after the run, also where something was planted',
  async box => {
    box.host('git init -q .; mkdir .github; chmod 555 .github .git/refs .')
    const before = box.listing()
    await box.sh('cat .git/HEAD; sleep 0.4')
    expect(box.listing()).toEqual(before)
    await box.sh(
      'chmod 755 .github .; mkdir .github/hooks; echo evil > .envrc; chmod 555 .github .; sleep 0.4; echo ok',
    )
    expect(box.listing()).toEqual(before)
    expect(existsSync(join(box.project, '.envrc'))).toBe(false)
    chmodSync(box.project, 0o755)
  },
)

conformance(
  'P3 more denied files than can be hidden stop the run; fewer are hidden',
  async box => {
    box.host('for i in $(seq 100); do echo SECRET > .env.$i; done; mkdir e; touch $(seq -f e/.env%g 1950)')
    expect((await box.sh('cat .env.100; echo ran')).stdout).toBe('ran\n')
    box.host('mv e/.env* .')
    const { code, stdout, stderr } = await box.sh('cat .env.*; echo ran')
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toContain('2050 denied paths exist')
    expect(readdirSync(box.project)).toHaveLength(2051)
  },
  { once: 'what is denied is looked for before there is a backend', users: 'ordinary' },
)

conformance(
  'P5 a grant behind a locked directory is refused as such, and not as one that does not exist',
  async box => {
    const place = join(box.home, 'vault/notes')
    box.directory(place)
    chmodSync(join(box.home, 'vault'), 0)
    const locked = await box.sh('echo ran', { flags: ['--read', place] })
    expect([locked.code, locked.stdout]).toEqual([2, ''])
    expect(locked.stderr).toContain(`${place} is in a directory that you may not enter`)
    chmodSync(join(box.home, 'vault'), 0o755)
    expect((await box.sh('echo ran', { flags: ['--read', place] })).stdout).toBe('ran\n')
  },
  { only: ({ who }) => who.uid !== 0 },
)
