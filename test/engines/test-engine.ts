import { spawnSync } from 'node:child_process'
import { sandboxId } from '../../src/config/project.ts'
import type { Who } from '../conformance/launcher.ts'

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

/** Engine arguments that remove leftovers of killed test runs: every build looks at all images. */
export const PRUNE = 'image prune --all --force --filter label=pen.sandbox --filter until=2h'

/** Removes what was built for a project: half a gigabyte each where podman must copy it for its user. */
export function removeImages(engine: Pick<TestEngine, 'command'>, project: string): void {
  const ask = (...argv: string[]) => {
    const [program = '', ...rest] = engine.command(argv)
    return spawnSync(program, rest, { encoding: 'utf8', timeout: 30_000 })
  }
  const label = `label=pen.sandbox=${sandboxId(project)}`
  const images = ask('images', '--quiet', '--filter', label)
    .stdout.split('\n')
    .filter(id => id !== '')
  if (images.length > 0) ask('rmi', '--force', ...new Set(images))
}
