/** A clone of this repository in a folder with a space in its name, with its own program and library. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { ROOT } from './sources.ts'

export interface Ran {
  readonly code: number
  readonly out: string
  readonly err: string
}

export interface Clone {
  readonly root: string
  /** Writes a file of the clone. */
  write(path: string, text: string): void
  /** Runs the shim in `cwd` with a small environment. */
  pen(argv: readonly string[], options?: { cwd?: string; env?: Readonly<Record<string, string>> }): Ran
  remove(): void
}

/** Shares node_modules with this repository: these tests are not about installing them. */
export function makeClone(options: { withPackages: boolean } = { withPackages: true }): Clone {
  const parent = mkdtempSync(join(tmpdir(), 'pen clone '))
  const root = join(parent, 'pen')
  mkdirSync(join(root, 'src'), { recursive: true })
  for (const name of ['pen', 'image', 'scripts', 'package.json', 'package-lock.json', 'tsconfig.json'])
    cpSync(join(ROOT, name), join(root, name), { recursive: true })
  if (options.withPackages) symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'))
  const write = (path: string, text: string): void => writeFileSync(join(root, path), text)
  write('src/main.ts', 'console.log(JSON.stringify(process.argv.slice(2)), process.cwd())')
  write('src/index.ts', 'export const library = true')
  return {
    root,
    write,
    pen: (argv, { cwd = tmpdir(), env = {} } = {}) => run([join(root, 'pen'), ...argv], cwd, env),
    remove: () => rmSync(parent, { recursive: true, force: true }),
  }
}

export function run(argv: readonly string[], cwd: string, env: Readonly<Record<string, string>> = {}): Ran {
  const ran = Bun.spawnSync([...argv], {
    cwd,
    env: { PATH: process.env['PATH'] ?? '/usr/bin:/bin', HOME: tmpdir(), ...env },
    timeout: 60_000,
  })
  return { code: ran.exitCode, out: ran.stdout.toString(), err: ran.stderr.toString() }
}
