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
