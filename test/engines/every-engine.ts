/**
 * One claim for every engine that this machine can have: podman with and without root, and Docker as root and
 * as an ordinary user. Docker's users alternate from claim to claim; PEN_EVERY_ENGINE=1 runs both.
 *
 *     const onEachEngine = everyEngine()
 *     onEachEngine('P16 …', async engine => { … })
 */
import { beforeAll } from 'bun:test'
import { EVERYBODY, type Who } from '../conformance/launcher.ts'
import { skipUnless } from '../skip.ts'
import { type Dockerd, dockerMissing, sharedDockerd } from './dockerd.ts'
import { podmanMissing, podmanOf } from './podman.ts'
import type { TestEngine } from './test-engine.ts'

export type OnEachEngine = (
  title: string,
  body: (engine: TestEngine) => Promise<void>,
  timeout?: number,
) => void

type Kind = TestEngine['backend']

const TRIES_ALL = process.env['PEN_EVERY_ENGINE'] === '1'
let turn = 0
const inTurn = (): readonly Who[] => EVERYBODY.slice(turn++ % EVERYBODY.length).slice(0, 1)

/** Called at the top of a test file, so that a daemon starts before its tests. */
export function everyEngine(
  kinds: readonly Kind[] = ['podman', 'docker'],
  /** Each user of Docker. */
  askers?: readonly Who[],
): OnEachEngine {
  // A group for the last of them: root needs none.
  const member = EVERYBODY.at(-1)
  if (member === undefined) throw new Error('no user to run tests as')
  const withDocker = kinds.includes('docker') && dockerMissing() === undefined
  let dockerd: Dockerd | undefined
  if (withDocker)
    beforeAll(async () => {
      dockerd = await sharedDockerd(member)
    }, 300_000)
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
    for (const who of askers ?? (TRIES_ALL ? EVERYBODY : inTurn()))
      on(
        `${title} (docker, as ${nameOf(who)})`,
        async () => await body((dockerd as Dockerd).as(who)),
        timeout,
      )
  }
}

const nameOf = ({ name }: Who): string => name
