import { spawnSync } from 'node:child_process'
import { sandboxId } from '../../src/config/project.ts'
import type { Who } from '../conformance/launcher.ts'

/** The base of image/Dockerfile. In the engines of the tests something else stands under that name: nothing is pulled. */
export const BASE_NAME = 'docker.io/library/debian:bookworm-slim'

/** A container engine that pen can be told to use: `env` goes into pen's environment, and pen hands it on. */
export interface TestEngine {
  readonly name: string
  readonly backend: 'podman' | 'docker'
  /** Whose it is: pen has to run as that user. */
  readonly who: Who
  readonly env: Readonly<Record<string, string>>
  /** A whole command line that asks this engine, from any user that may become `who`. */
  command(argv: readonly string[]): string[]
}

/** Words for an engine that take away what runs of tests left that were killed: every build looks at all images there are. */
export const PRUNE = 'image prune --all --force --filter label=pen.sandbox --filter until=2h'

/** What was built for a project goes with it: half a gigabyte each where podman has to copy it for its user. */
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
