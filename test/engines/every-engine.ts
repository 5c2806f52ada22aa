/**
 * One claim, for every engine that this machine can have: podman with and without root, and Docker.
 *
 *     const onEachEngine = everyEngine()
 *     onEachEngine('P16 …', async engine => { … })
 */
import { afterAll, beforeAll } from 'bun:test'
import { EVERYBODY, type Who } from '../conformance/launcher.ts'
import { skipUnless } from '../skip.ts'
import { type Dockerd, dockerMissing, startDockerd } from './dockerd.ts'
import { podmanMissing, podmanOf } from './podman.ts'
import type { TestEngine } from './test-engine.ts'

export type OnEachEngine = (
  title: string,
  body: (engine: TestEngine) => Promise<void>,
  timeout?: number,
) => void

type Kind = TestEngine['backend']

/** Called at the top of a test file: a daemon that it needs is started before its tests, and ended after them. */
export function everyEngine(kinds: readonly Kind[] = ['podman', 'docker']): OnEachEngine {
  const [first] = EVERYBODY
  if (first === undefined) throw new Error('there is nobody to run tests')
  const withDocker = kinds.includes('docker') && dockerMissing() === undefined
  let dockerd: Dockerd | undefined
  if (withDocker) {
    beforeAll(async () => {
      dockerd = await startDockerd(first)
    }, 300_000)
    afterAll(async () => await dockerd?.stop(), 20_000)
  }
  const podmans = EVERYBODY.filter(() => kinds.includes('podman'))
  beforeAll(() => {
    for (const who of podmans) if (podmanMissing(who) === undefined) podmanOf(who)
  }, 300_000)
  return (title, body, timeout = 60_000) => {
    for (const who of podmans) {
      const why = podmanMissing(who)
      skipUnless(why === undefined, why ?? '')(
        `${title} (podman, as ${nameOf(who)})`,
        () => body(podmanOf(who)),
        timeout,
      )
    }
    if (!kinds.includes('docker')) return
    const why = dockerMissing()
    const on = skipUnless(why === undefined, why ?? '')
    on(`${title} (docker)`, async () => await body(dockerd as Dockerd), timeout)
  }
}

const nameOf = ({ name }: Who): string => name
