/** A home with a project for one kind of user and one test, and the engine of its sandbox. */
import { spawnSync } from 'node:child_process'
import { chmodSync, lchownSync, mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { sandboxId } from '../../src/config/project.ts'
import { auditRecords } from '../audit-records.ts'
import { bwrapWorks } from '../bubblewrap.ts'
import { EVERYBODY, PEN, type Who } from '../conformance/launcher.ts'
import { copySeed } from '../conformance/seed.ts'
import { skipUnless } from '../skip.ts'
import { GAPS } from '../soft/soft-box.ts'

export interface Ground {
  readonly name: string
  readonly who: Who
  readonly backend: 'process' | 'podman' | 'docker' | 'soft' | 'vm'
  readonly env: Readonly<Record<string, string>>
}

export class Place {
  readonly ground: Ground
  readonly root: string
  readonly home: string
  readonly project: string
  readonly stateDir: string

  constructor(ground: Ground, base = tmpdir()) {
    this.ground = ground
    this.root = realpathSync(mkdtempSync(join(base, 'pen-lib-')))
    this.home = join(this.root, 'home')
    this.project = join(this.home, 'project')
    this.stateDir = join(this.home, '.pen/sandboxes', sandboxId(this.project))
    chmodSync(this.root, 0o755)
    this.#directory(this.project)
    for (const path of ['.pen', '.pen/sandboxes', this.stateDir])
      this.#directory(join(this.home, path.replace(`${this.home}/`, '')), 0o700)
    const { who, backend, env } = ground
    if (backend !== 'soft')
      copySeed({ who, flags: ['--backend', backend, '--offline'], env }, join(this.home, '.pen'))
  }

  get env(): Record<string, string> {
    return { PATH: '/usr/local/bin:/usr/bin:/bin', HOME: this.home, LANG: 'C.UTF-8', ...this.ground.env }
  }

  /** The live config that `pen init` and `pen config set` would make. */
  configure(config: object = {}): void {
    const { backend } = this.ground
    const acceptGaps = backend === 'soft' ? GAPS : []
    const document = { version: 1, profile: 'coding', backend, acceptGaps, ...config }
    this.file(join(this.stateDir, 'config.json'), JSON.stringify(document), 0o600)
  }

  /** Relative to the project; owned by the user. */
  file(path: string, text: string, mode = 0o644): string {
    const full = path.startsWith('/') ? path : join(this.project, path)
    this.#directory(dirname(full))
    writeFileSync(full, text)
    chmodSync(full, mode)
    lchownSync(full, this.ground.who.uid, this.ground.who.gid)
    return full
  }

  /** As the user, on the host. */
  argv(program: string, ...args: readonly string[]): [string, ...string[]] {
    const [first, ...rest] = [...this.ground.who.become, program, ...args]
    return [first ?? program, ...rest]
  }

  pen(...args: readonly string[]): {
    readonly code: number | null
    readonly said: string
    readonly stdout: string
  } {
    const [program, ...rest] = this.argv(PEN, ...args)
    const ran = spawnSync(program, rest, {
      cwd: this.project,
      env: this.env,
      encoding: 'utf8',
      timeout: 120_000,
    })
    return { code: ran.status, stdout: ran.stdout, said: `${ran.stdout}${ran.stderr}` }
  }

  /** The same without blocking this process, whose servers the command may use. */
  async penBeside(...args: readonly string[]): Promise<{ readonly code: number; readonly said: string }> {
    const child = Bun.spawn(this.argv(PEN, ...args), {
      cwd: this.project,
      env: this.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    const [out, err, code] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
      child.exited,
    ])
    return { code, said: `${out}${err}` }
  }

  isRunning(): boolean {
    return this.pen('status').code === 0
  }

  audit(): Record<string, unknown>[] {
    return auditRecords(this.stateDir)
  }

  remove(): void {
    this.pen('stop')
    rmSync(this.root, { recursive: true, force: true })
  }

  #directory(path: string, mode = 0o755): void {
    const made = mkdirSync(path, { recursive: true, mode })
    for (let at = path; made !== undefined && at.length >= made.length; at = dirname(at))
      lchownSync(at, this.ground.who.uid, this.ground.who.gid)
  }
}

const works = bwrapWorks() && spawnSync(PEN, ['version']).status === 0
export const onProcess = skipUnless(works, 'bubblewrap that works, or a built pen, is missing')

export const PROCESS: readonly Ground[] = EVERYBODY.map(who => ({
  name: `process, as ${who.name}`,
  who,
  backend: 'process',
  env: {},
}))

export const MACHINES: readonly Ground[] = EVERYBODY.map(who => ({
  name: `vm, as ${who.name}`,
  who,
  backend: 'vm',
  env: {},
}))

/** An ordinary user's project: root runs commands there as its owner. */
export const SOFT: readonly Ground[] = EVERYBODY.filter(({ uid }) => uid !== 0).map(who => ({
  name: `soft, as ${who.name}`,
  who,
  backend: 'soft',
  env: {},
}))

export type Claim = (place: Place) => Promise<void>

export function onGrounds(grounds: readonly Ground[], title: string, body: Claim, base?: string): void {
  for (const ground of grounds)
    onProcess(`${title} (${ground.name})`, () => inPlace(ground, body, base), 120_000)
}

export async function inPlace(ground: Ground, body: Claim, base?: string): Promise<void> {
  const place = new Place(ground, base)
  try {
    await body(place)
  } finally {
    place.remove()
  }
}
