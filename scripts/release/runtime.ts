/** Bun for another platform, from npm. The lock file decides version and content; what was fetched once is kept. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Target } from './targets.ts'

interface Locked {
  readonly version: string
  readonly integrity: string
}

/** The path of the runtime of `target`. `root` is the clone. */
export function runtimeOf({ runtime }: Target, root: string): string {
  const { version, integrity } = lockedAt(root, `node_modules/${runtime}`)
  const kept = join(root, 'dist/runtimes', `${runtime.replace('@oven/', '')}-${version}`)
  if (!existsSync(kept)) fetchInto(kept, `${runtime}@${version}`, integrity)
  return join(kept, 'package/bin/bun')
}

export function lockedAt(root: string, place: string): Locked {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, Partial<Locked>>
  }
  const { version, integrity } = packages[place] ?? {}
  if (version === undefined || integrity === undefined)
    throw new Error(`package-lock.json has no ${place}: run npm install, and commit the lock file`)
  return { version, integrity }
}

function fetchInto(kept: string, what: string, integrity: string): void {
  process.stderr.write(`fetching ${what}\n`)
  mkdirSync(join(kept, '..'), { recursive: true })
  const made = mkdtempSync(`${kept}.`)
  try {
    run(['npm', 'pack', '--silent', '--prefer-offline', '--pack-destination', made, what])
    const [archive = ''] = readdirSync(made)
    const digest = createHash('sha512')
      .update(readFileSync(join(made, archive)))
      .digest('base64')
    if (`sha512-${digest}` !== integrity)
      throw new Error(
        `${what} is not the package that package-lock.json names: its digest is sha512-${digest}`,
      )
    run(['tar', '--extract', '--gzip', '--no-same-owner', '--file', join(made, archive), '--directory', made])
    rmSync(join(made, archive))
    renameSync(made, kept)
  } finally {
    rmSync(made, { recursive: true, force: true })
  }
}

export function run(argv: readonly string[], cwd = '.'): void {
  const done = Bun.spawnSync([...argv], { cwd, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  if (done.exitCode !== 0) throw new Error(`${argv.join(' ')} failed:\n${done.stdout}${done.stderr}`)
}
