/** Runs pen's built binary in a project whose policy restricts the tools, as root and as an ordinary user. */
import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bwrapWorks } from '../bubblewrap.ts'
import { type DefineTest, onlyWhen, skipUnless } from '../skip.ts'

const ROOT = join(import.meta.dir, '../..')
const USER = 'pentest'
const isRoot = process.getuid?.() === 0
const works = (...argv: [string, ...string[]]) => spawnSync(argv[0], argv.slice(1)).status === 0
const ready =
  bwrapWorks() &&
  works('/usr/bin/python3', '-c', 'import ctypes') &&
  works('git', '--version') &&
  works(join(ROOT, 'dist/pen'), 'version')
const onLinux = skipUnless(ready, 'bubblewrap, python3, git or a built pen is missing')

/** In a directory that every user can read, outside of the project. */
const place = ready ? mkdtempSync(join(tmpdir(), 'pen-tools-')) : ''
export const PEN = join(place, 'pen')

export function preparePen(): void {
  if (!ready) return
  if (isRoot && !works('id', USER)) works('useradd', '-m', USER)
  chmodSync(place, 0o755)
  copyFileSync(join(ROOT, 'dist/pen'), PEN)
}
export const removePen = (): void => rmSync(place, { recursive: true, force: true })

export type Run = (
  command: readonly string[],
  options?: { readonly pen?: readonly string[]; readonly verb?: 'run' | 'plan' },
) => Ended
export interface Ended {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

/** Defines a test for each kind of user. As root pen becomes another user, and every claim still holds. */
export function forEachUser(title: string, body: (project: (tools: object) => Run) => void): void {
  onLinux(title, () => body(tools => inProject(tools, undefined)), 60_000)
  const asUser: DefineTest = onlyWhen(isRoot && ready)
  asUser(`${title}, as an ordinary user`, () => body(tools => inProject(tools, USER)), 60_000)
}

let count = 0

function inProject(tools: object, user: string | undefined): Run {
  const home = join(place, `home-${count++}`)
  const project = join(home, 'project')
  mkdirSync(project, { recursive: true })
  writeFileSync(join(project, 'agent-permissions.json'), JSON.stringify({ version: 1, tools }))
  if (user !== undefined) spawnSync('chown', ['-R', user, home])
  const become = user === undefined ? [] : ['setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups']
  return (command, { pen = [PEN], verb = 'run' } = {}) => {
    const [first = '', ...rest] = [...become, ...pen, verb, '--offline', ...dashed(command)]
    const { status, stdout, stderr } = spawnSync(first, rest, {
      cwd: project,
      env: { PATH: '/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin', HOME: home },
      encoding: 'utf8',
      timeout: 30_000,
      killSignal: 'SIGKILL',
    })
    return { code: status, out: stdout, err: stderr }
  }
}

const dashed = (command: readonly string[]) => (command.length === 0 ? [] : ['--', ...command])
