/** The npm packages: the library with a shell script as its program, and the real program for each platform. */
import { chmodSync, copyFileSync, cpSync, linkSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { run } from './runtime.ts'
import { nameOf, type Target } from './targets.ts'

/** The name `pen` belongs to another package. */
export const PACKAGE = 'pen-sandbox'

interface Sources {
  readonly root: string
  /** The release so far: a program for each target, and the notices. */
  readonly release: string
  readonly version: string
  readonly description: string
}

export function packForPlatform(target: Target, sources: Sources, folder: string): void {
  const { release, version } = sources
  const name = nameOf(target)
  mkdirSync(join(folder, 'dist'), { recursive: true })
  linkSync(join(release, `pen-${name}`), join(folder, 'dist/pen'))
  copyFileSync(join(release, 'THIRD-PARTY-NOTICES.md'), join(folder, 'THIRD-PARTY-NOTICES.md'))
  copyFileSync(join(sources.root, 'LICENSE'), join(folder, 'LICENSE'))
  pack(folder, release, {
    name: `${PACKAGE}-${name}`,
    version,
    description: `The program of ${PACKAGE} for ${name}`,
    license: 'Apache-2.0',
    os: [target.platform],
    cpu: [target.arch],
    ...(target.platform === 'linux' && { libc: ['glibc'] }),
    files: ['dist', 'THIRD-PARTY-NOTICES.md'],
  })
}

/** `dist` has index.js and the types. */
export function packLibrary(targets: readonly Target[], sources: Sources, folder: string): void {
  const { root, release, version, description } = sources
  mkdirSync(join(folder, 'dist'), { recursive: true })
  for (const name of ['index.js', 'types'])
    cpSync(join(root, 'dist', name), join(folder, 'dist', name), { recursive: true })
  copyFileSync(join(root, 'scripts/release/pen.sh'), join(folder, 'dist/pen'))
  chmodSync(join(folder, 'dist/pen'), 0o755)
  for (const name of ['README.md', 'LICENSE']) copyFileSync(join(root, name), join(folder, name))
  pack(folder, release, {
    name: PACKAGE,
    version,
    description,
    license: 'Apache-2.0',
    type: 'module',
    engines: { node: '>=20' },
    os: [...new Set(targets.map(({ platform }) => platform))],
    bin: { pen: 'dist/pen' },
    exports: { '.': { types: './dist/types/index.d.ts', default: './dist/index.js' } },
    files: ['dist'],
    optionalDependencies: Object.fromEntries(
      targets.map(target => [`${PACKAGE}-${nameOf(target)}`, version]),
    ),
  })
}

function pack(folder: string, release: string, manifest: object): void {
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
  run(['npm', 'pack', '--silent', '--ignore-scripts', '--pack-destination', join(release, 'npm')], folder)
}
