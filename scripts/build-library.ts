/**
 * Builds what programs import: dist/index.js, one file for Node and Bun, and with `types` the declarations
 * beside it. Both are written elsewhere and renamed into place when complete.
 */
import { mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'

const root = join(import.meta.dir, '..')

export function buildLibrary(dist: string): void {
  const temporary = join(dist, `index.${process.pid}.tmp`)
  run([process.execPath, 'build', '--target=node', '--format=esm', 'src/index.ts', `--outfile=${temporary}`])
  renameSync(temporary, join(dist, 'index.js'))
}

/** Of the compiler's declarations, only those that a program can import. */
export function buildTypes(dist: string): void {
  const made = mkdtempSync(join(tmpdir(), 'pen-types-'))
  const kept = join(dist, `types.${process.pid}.tmp`)
  try {
    run([join(root, 'node_modules/.bin/tsc'), '-p', 'tsconfig.library.json', '--outDir', made])
    keepReached(made, kept)
    rmSync(join(dist, 'types'), { recursive: true, force: true })
    renameSync(kept, join(dist, 'types'))
  } finally {
    for (const dir of [made, kept]) rmSync(dir, { recursive: true, force: true })
  }
}

const SPECIFIER = /((?:from|import\()\s*['"])(\.[^'"]+)\.ts(['"])/g

function keepReached(from: string, to: string): void {
  const waiting = ['index']
  const reached = new Set(waiting)
  for (let module = waiting.pop(); module !== undefined; module = waiting.pop()) {
    const text = readFileSync(join(from, `${module}.d.ts`), 'utf8')
    for (const [, , specifier = ''] of text.matchAll(SPECIFIER)) {
      const next = join(dirname(module), specifier)
      if (!reached.has(next)) waiting.push(next)
      reached.add(next)
    }
    const file = join(to, `${module}.d.ts`)
    mkdirSync(dirname(file), { recursive: true })
    // The names under which every version of the compiler looks for declarations.
    writeFileSync(file, text.replace(SPECIFIER, '$1$2.js$3'))
  }
}

function run(argv: readonly string[]): void {
  const made = Bun.spawnSync([...argv], { cwd: root, stdout: 'pipe', stderr: 'pipe' })
  if (made.exitCode !== 0) throw new Error(`${argv[0]} failed:\n${made.stdout}${made.stderr}`)
}

/** `npm pack` needs them; a build that only runs does not. */
if (import.meta.main) buildTypes(join(root, 'dist'))
