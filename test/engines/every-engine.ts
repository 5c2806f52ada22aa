/**
 * One claim for every engine that this machine can have: podman with and without root, and Docker as root and
 * as an ordinary user. Docker's users alternate from claim to claim, and podman's where a file says so;
 * PEN_EVERY_ENGINE=1 runs both.
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
type Users = 'all' | 'in turn' | 'ordinary'

const TRIES_ALL = process.env['PEN_EVERY_ENGINE'] === '1'

/** A user's podman has a storage, a user namespace and cgroups of its own. Docker's daemon is the same for all. */
const USERS: Readonly<Record<Kind, Users>> = { podman: 'all', docker: 'in turn' }

/** Called at the top of a test file, so that a daemon starts before its tests. */
export function everyEngine(
  kinds: readonly Kind[] = ['podman', 'docker'],
  some: Partial<typeof USERS> = {},
): OnEachEngine {
  let turn = 0
  const users = { ...USERS, ...some }
  const usersOf = (kind: Kind, claim: number): readonly Who[] => {
    if (users[kind] === 'ordinary') return EVERYBODY.filter(({ uid }) => uid !== 0)
    const isTried = (n: number): boolean =>
      users[kind] === 'all' || TRIES_ALL || n === claim % EVERYBODY.length
    return EVERYBODY.filter((_, n) => isTried(n))
  }
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
    const claim = turn++
    for (const who of kinds.includes('podman') ? usersOf('podman', claim + 1) : []) {
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
    for (const who of usersOf('docker', claim))
      on(
        `${title} (docker, as ${nameOf(who)})`,
        async () => await body((dockerd as Dockerd).as(who)),
        timeout,
      )
  }
}

const nameOf = ({ name }: Who): string => name
