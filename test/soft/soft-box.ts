/**
 * A project in which pen runs commands without kernel help: as an ordinary user, and as root in that user's
 * project.
 */
import { spawn } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { sandboxId } from '../../src/config/project.ts'
import { auditRecords } from '../audit-records.ts'
import { EVERYBODY, isRoot, ordinary, PEN, type Who } from '../conformance/launcher.ts'
import { skipUnless } from '../skip.ts'

export const GAPS = ['files-by-gate', 'tools-by-gate', 'processes-may-escape', 'proxy-only', 'no-seccomp']
export const accepting = (names: readonly string[]): string[] => names.flatMap(name => ['--accept-gap', name])
export const SOFT = ['run', '--isolation', 'soft', ...accepting(GAPS), '--']
export const KEEP_SOFT = ['start', '--detach', '--isolation', 'soft', ...accepting(GAPS)]

export interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export type AuditLine = Readonly<Record<string, unknown>> & { readonly kind: string }

export class SoftBox {
  readonly who: Who
  /** The owner of the project: root's commands run as this user. */
  readonly owner: Who
  readonly root: string
  readonly home: string
  readonly project: string
  readonly state: string

  constructor(who: Who) {
    this.who = who
    this.owner = ordinary ?? who
    this.root = realpathSync(mkdtempSync(join(tmpdir(), 'pen-soft-test-')))
    chmodSync(this.root, 0o755)
    this.home = join(this.root, 'home')
    this.project = join(this.root, 'work')
    this.state = join(this.home, '.pen/sandboxes', sandboxId(this.project))
    this.#make(this.home, this.who)
    this.#make(this.project, this.owner)
    this.#make(this.state, this.who)
    this.config({})
  }

  #make(path: string, { uid, gid }: Who): void {
    const made = mkdirSync(path, { recursive: true, mode: path.includes('.pen') ? 0o700 : 0o755 })
    for (let at = path; made !== undefined && at.length >= made.length; at = dirname(at))
      chownSync(at, uid, gid)
  }

  config(value: object): void {
    const file = join(this.state, 'config.json')
    writeFileSync(file, JSON.stringify({ version: 1, ...value }))
    chownSync(file, this.who.uid, this.who.gid)
  }

  file(path: string, text: string): string {
    const full = join(this.project, path)
    this.#make(dirname(full), this.owner)
    writeFileSync(full, text)
    chownSync(full, this.owner.uid, this.owner.gid)
    return full
  }

  has = (path: string): boolean => existsSync(join(this.project, path))

  start(args: readonly string[], { around = [] as readonly string[], stdin = '' } = {}) {
    const [program = '', ...rest] = [...this.who.become, ...around, PEN, ...args]
    const child = spawn(program, rest, {
      cwd: this.project,
      env: {
        PATH: '/usr/local/bin:/usr/bin:/bin',
        HOME: this.home,
        TERM: 'dumb',
        LANG: 'C.UTF-8',
        API_KEY: 'host secret',
      },
    })
    const said = { stdout: '', stderr: '' }
    child.stdout.on('data', data => (said.stdout += String(data)))
    child.stderr.on('data', data => (said.stderr += String(data)))
    child.stdin.on('error', () => undefined)
    child.stdin.end(stdin)
    const ended = new Promise<Ended>((resolve, reject) => {
      child.once('error', reject)
      child.once('close', code => resolve({ code, ...said }))
    })
    return { child, said, ended }
  }

  pen(...args: string[]): Promise<Ended> {
    return this.start(args).ended
  }

  /** One command in a soft sandbox with all its gaps accepted. */
  run(...command: string[]): Promise<Ended> {
    return this.pen(...SOFT, ...command)
  }

  audit(): AuditLine[] {
    return auditRecords<AuditLine>(this.state).sort((a, b) =>
      String(a['time']) < String(b['time']) ? -1 : 1,
    )
  }

  of = (kind: string): AuditLine[] => this.audit().filter(line => line.kind === kind)

  remove(): void {
    rmSync(this.root, { recursive: true, force: true })
  }
}

const ready = process.platform === 'linux' && existsSync(PEN) && (!isRoot || ordinary !== undefined)
const onLinux = skipUnless(ready, 'a built pen or the test user is missing')

/** One test for each kind of user. */
export function forEverybody(title: string, body: (box: SoftBox) => Promise<void>, timeout = 60_000): void {
  for (const who of EVERYBODY)
    onLinux(
      `${title} (${who.name})`,
      async () => {
        const box = new SoftBox(who)
        try {
          await body(box)
        } finally {
          box.remove()
        }
      },
      timeout,
    )
}

/**
 * Leaves one process in a new session and one that forked twice. Both have written their pids when `up` is
 * printed.
 */
export const LEAVING =
  'setsid sh -c "echo \\$\\$ > own; sleep 300" & ( ( sh -c "echo \\$\\$ > forked; sleep 300" & ) ) ; while [ ! -s own ] || [ ! -s forked ]; do :; done; echo up; '

/** With a running sandbox, which is gone afterwards. */
export async function withStarted(box: SoftBox, body: () => Promise<void>): Promise<void> {
  const { code, stderr } = await box.pen(...KEEP_SOFT)
  if (code !== 0) throw new Error(stderr)
  try {
    await body()
  } finally {
    await box.pen('stop')
  }
}
