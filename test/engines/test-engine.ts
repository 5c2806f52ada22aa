import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { sandboxId } from '../../src/config/project.ts'
import type { Who } from '../conformance/launcher.ts'
import { CACHE } from './base-image.ts'

/** The base of image/Dockerfile. The tests' engines have another image under that name, so nothing is pulled. */
export const BASE_NAME = 'docker.io/library/debian:bookworm-slim'

/** A container engine for pen to use: `env` goes into pen's environment, and pen passes it on. */
export interface TestEngine {
  readonly name: string
  readonly backend: 'podman' | 'docker'
  /** Its user: pen must run as that user. */
  readonly who: Who
  readonly env: Readonly<Record<string, string>>
  /** A command line that runs this engine's client, from any user that may become `who`. */
  command(argv: readonly string[]): string[]
}

const found = new Map<string, boolean>()

/** The names of these commands that this machine does not have. Each is looked for once. */
export function missingCommands(names: readonly string[]): string[] {
  for (const name of names)
    if (!found.has(name)) found.set(name, spawnSync('sh', ['-c', `command -v ${name}`]).status === 0)
  return names.filter(name => found.get(name) !== true)
}

/** Engine arguments that remove leftovers of killed test runs: every build looks at all images. */
export const PRUNE = 'image prune --all --force --filter label=pen.sandbox --filter until=2h'

/**
 * The command, while no other test process builds or removes images in the same storage. Docker has a daemon for each
 * test process. podman shares one storage: it may remove a layer that another build has just found in its cache.
 */
export function oneAtATime({ backend, who }: TestEngine, argv: readonly string[]): readonly string[] {
  return backend === 'podman' ? ['flock', '--close', join(CACHE, `podman-${who.uid}.lock`), ...argv] : argv
}

/** Removes what was built for a project: half a gigabyte each where podman must copy it for its user. */
export function removeImages(engine: TestEngine, project: string): void {
  const ask = (...argv: string[]) => {
    const [program = '', ...rest] = oneAtATime(engine, engine.command(argv))
    return spawnSync(program, rest, { encoding: 'utf8', timeout: 30_000 })
  }
  const label = `label=pen.sandbox=${sandboxId(project)}`
  const images = ask('images', '--quiet', '--filter', label)
    .stdout.split('\n')
    .filter(id => id !== '')
  if (images.length > 0) ask('rmi', '--force', ...new Set(images))
}
