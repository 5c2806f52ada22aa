/** A home with a project, where one engine builds images. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sandboxId } from '../../src/config/project.ts'
import { auditRecords } from '../audit-records.ts'
import { Box } from '../conformance/box.ts'
import { type Launcher, PEN } from '../conformance/launcher.ts'
import { ANY_BACKEND } from '../conformance/test-backend.ts'
import { oneAtATime, removeImages, type TestEngine } from '../engines/test-engine.ts'

export interface Said {
  readonly code: number | null
  readonly out: string
  readonly err: string
}

export class Workshop {
  readonly engine: TestEngine
  readonly box: Box
  /** Words before pen, and the pen to use: on another machine when a test has one. */
  readonly #around: readonly string[]
  readonly #pen: string
  #dockerfiles = 0

  constructor(engine: TestEngine, around: readonly string[] = [], pen = PEN) {
    this.engine = engine
    this.#around = around
    this.#pen = pen
    const launcher: Launcher = {
      name: engine.name,
      who: engine.who,
      ...ANY_BACKEND,
      // What pen knows of this engine, so that each home does not detect it again. pen's own image is already
      // there.
      flags: ['--backend', engine.backend, '--offline'],
      env: engine.env,
      start: () => {
        throw new Error('nothing runs here, it only builds')
      },
    }
    this.box = new Box(launcher)
  }

  /** The user's own live config. */
  configure(config: object): void {
    this.box.file(join(this.stateDir, 'config.json'), `${JSON.stringify({ version: 1, ...config })}\n`, 0o600)
  }

  get stateDir(): string {
    const sandboxes = this.box.directory(join(this.box.home, '.pen/sandboxes'), 0o700)
    return this.box.directory(join(sandboxes, sandboxId(this.box.project)), 0o700)
  }

  words(...args: readonly string[]): { argv: string[]; env: Record<string, string> } {
    const { who, env } = this.engine
    const pairs = Object.entries(this.box.env(env)).map(([name, value]) => `${name}=${value}`)
    const argv = [
      ...this.#around,
      ...who.become,
      'env',
      '-i',
      '-C',
      this.box.project,
      ...pairs,
      this.#pen,
      ...args,
    ]
    return { argv, env: this.box.env(env) }
  }

  /** One command of pen in the project, as the user of the engine. */
  pen(...args: readonly string[]): Said {
    const { argv } = this.words(...args)
    const [program = '', ...rest] = args[0] === 'build' ? oneAtATime(this.engine, argv) : argv
    const ran = spawnSync(program, rest, { encoding: 'utf8', timeout: 55_000 })
    return { code: ran.status, out: ran.stdout, err: ran.stderr }
  }
  build(...flags: readonly string[]): Said {
    return this.pen('build', '--backend', this.engine.backend, ...flags)
  }

  /** Agrees to the current Dockerfile, like a person who has read it. */
  agreeAndBuild(...flags: readonly string[]): Said {
    const shown = this.build(...flags)
    const digest = /^sha256:[0-9a-f]{64}$/m.exec(shown.out)?.[0]
    if (digest === undefined) return shown
    return this.build('--yes', '--expect', digest, ...flags)
  }

  ask(...argv: readonly string[]): Said {
    const [program = '', ...rest] = this.engine.command(argv)
    const ran = spawnSync(program, rest, { encoding: 'utf8', timeout: 55_000 })
    return { code: ran.status, out: ran.stdout, err: ran.stderr }
  }

  /** The output of a command in a container of the last built image. */
  inside(built: Said, script: string): string {
    const name = /^built: (\S+)$/m.exec(built.out)?.[1]
    if (name === undefined) throw new Error(`nothing was built: ${built.code} ${built.out}${built.err}`)
    const image = this.engine.backend === 'podman' ? `localhost/${name}` : name
    const ran = this.ask('run', '--rm', '--network=none', '--entrypoint=/bin/sh', image, '-c', script)
    if (ran.code !== 0) throw new Error(`${script}: ${ran.code} ${ran.err}`)
    return ran.out
  }

  /** Records of all builds, in order. */
  audit(): { readonly kind: string; readonly [field: string]: unknown }[] {
    return auditRecords(this.stateDir)
  }

  dockerfile(text: string): string {
    this.#dockerfiles += 1
    return this.box.file('.pen/Dockerfile', text)
  }
  write(path: string, text: string): void {
    writeFileSync(join(this.box.project, path), text)
  }

  [Symbol.dispose](): void {
    // Half a second of the engine, where there is nothing to remove.
    if (this.#dockerfiles > 0) removeImages(this.engine, this.box.project)
    this.box.remove()
  }
}
