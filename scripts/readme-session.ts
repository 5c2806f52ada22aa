/**
 * The terminal session of README.md, from a real run: `npm run readme` runs the commands with dist/pen and writes the block.
 * test/docs/session.test.ts fails when the README shows something else. What varies (home, id, dates) is masked.
 */
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const ROOT = join(import.meta.dir, '..')
const README = join(ROOT, 'README.md')

const SESSION = [
  'pen run -- cat .env',
  'pen run -- ls /home',
  "pen run -- git commit -q --allow-empty -m 'from the sandbox'",
  'git log --oneline --format=%s',
  'pen run -- touch .git/hooks/pre-commit; ls .git/hooks/pre-commit',
  'pen run -- curl -s https://example.com/',
  'pen allow example.com:443',
  'pen policy explain example.com:443',
  'pen logs',
] as const

/** The first run says which backend it has, which differs between machines. It is not part of the session. */
const BEFORE = `git init -q . && git config user.name You && git config user.email you@example.com && echo SECRET=1 > .env && pen run -- true`

const BLOCK = /(<!-- not run: written by scripts\/readme-session\.ts[^\n]*-->\n```console\n)([\s\S]*?)(```\n)/

export function runSession(pen = join(ROOT, 'dist')): string {
  const home = realpathSync(mkdtempSync(join(tmpdir(), 'pen-readme-')))
  const project = join(home, 'project')
  mkdirSync(project)
  const run = (line: string): string => {
    const env = { PATH: `${pen}:/usr/local/bin:/usr/bin:/bin`, HOME: home, TERM: 'dumb', LC_ALL: 'C' }
    const ran = Bun.spawnSync(['sh', '-c', `{ ${line}; } 2>&1`], { cwd: project, env, timeout: 60_000 })
    return mask(ran.stdout.toString(), home)
  }
  try {
    run(BEFORE)
    return SESSION.map(line => `$ ${line}\n${run(line)}`).join('')
  } finally {
    rmSync(home, { recursive: true, force: true })
  }
}

const mask = (text: string, home: string): string =>
  text
    .replaceAll(home, '/home/you')
    .replaceAll(/\d{4}-\d\d-\d\d \d\d:\d\d:\d\d/g, '2026-01-31 12:00:00')
    .replaceAll(/\bproject-[0-9a-f]{16}\b/g, 'project-0123456789abcdef')
    .replaceAll(/ +$/gm, '')

export const shownSession = (): string => BLOCK.exec(readFileSync(README, 'utf8'))?.[2] ?? ''

if (import.meta.main) {
  const session = runSession()
  const text = readFileSync(README, 'utf8')
  if (!BLOCK.test(text)) throw new Error('README.md has no block for the session')
  writeFileSync(
    README,
    text.replace(BLOCK, (_, head: string, __, end: string) => `${head}${session}${end}`),
  )
}
