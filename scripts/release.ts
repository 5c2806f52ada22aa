/**
 * Makes release/ (docs/decisions/0092): programs and npm packages for every platform, with sums, a bill of materials, notices, and
 * the scripts that install them.
 */
import { createHash } from 'node:crypto'
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { BUILD_FLAGS, build, revision } from './build.ts'
import { buildLibrary, buildTypes } from './build-library.ts'
import { billOfMaterials } from './release/bill-of-materials.ts'
import { partsOf, runtimePart } from './release/contents.ts'
import { notices } from './release/notices.ts'
import { packForPlatform, packLibrary } from './release/npm-packages.ts'
import { run, runtimeOf } from './release/runtime.ts'
import { nameOf, TARGETS } from './release/targets.ts'

const root = join(import.meta.dir, '..')

/** Replaces `release` when everything is there. */
export function makeRelease(release: string): void {
  const { version, description } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    version: string
    description: string
  }
  const temporary = `${release}.${process.pid}.tmp`
  const packing = mkdtempSync(join(root, 'dist/packing.'))
  try {
    mkdirSync(join(temporary, 'npm'), { recursive: true })
    for (const target of TARGETS) {
      process.stderr.write(`building pen for ${nameOf(target)}\n`)
      build({
        entry: join(root, 'src/main.ts'),
        out: join(temporary, `pen-${nameOf(target)}`),
        define: { PEN_VERSION: version, PEN_REVISION: revision() },
        runtime: { ...target, program: runtimeOf(target, root) },
      })
    }
    const parts = partsOf(bundledFiles(packing), root)
    const runtimes = TARGETS.map(target => runtimePart(target, root))
    const about = readFileSync(join(root, 'scripts/release/runtime-notice.md'), 'utf8')
    writeFileSync(join(temporary, 'THIRD-PARTY-NOTICES.md'), notices(parts, about))
    writeFileSync(join(temporary, 'sbom.cdx.json'), billOfMaterials(version, [...parts, ...runtimes]))
    buildLibrary(join(root, 'dist'))
    buildTypes(join(root, 'dist'))
    const sources = { root, release: temporary, version, description }
    process.stderr.write('packing for npm\n')
    for (const target of TARGETS) packForPlatform(target, sources, join(packing, nameOf(target)))
    packLibrary(TARGETS, sources, join(packing, 'library'))
    for (const name of ['install.sh', 'uninstall.sh', 'LICENSE'])
      copyFileSync(join(root, name), join(temporary, name))
    writeFileSync(join(temporary, 'SHA256SUMS'), sumsOf(temporary))
    rmSync(release, { recursive: true, force: true })
    renameSync(temporary, release)
  } finally {
    for (const folder of [temporary, packing]) rmSync(folder, { recursive: true, force: true })
  }
}

/** Of the program. The library has a part of them. */
function bundledFiles(folder: string): readonly string[] {
  const list = join(folder, 'bundle.json')
  const flags = BUILD_FLAGS.filter(flag => !flag.includes('compile') && flag !== '--bytecode')
  run(
    [
      process.execPath,
      'build',
      ...flags,
      '--target=bun',
      `--metafile=${list}`,
      'src/main.ts',
      `--outdir=${folder}/bundle`,
    ],
    root,
  )
  return Object.keys((JSON.parse(readFileSync(list, 'utf8')) as { inputs: object }).inputs)
}

function sumsOf(folder: string): string {
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
  return files
    .toSorted()
    .map(
      file =>
        `${createHash('sha256').update(readFileSync(file)).digest('hex')}  ${file.slice(folder.length + 1)}\n`,
    )
    .join('')
}

if (import.meta.main) {
  const release = join(root, 'release')
  mkdirSync(join(root, 'dist'), { recursive: true })
  makeRelease(release)
  process.stdout.write(`${release}\n`)
}
