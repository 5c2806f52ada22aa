/** Defines the tests of a promise: one for each backend and each kind of user. */
import { spawnSync } from 'node:child_process'
import { bwrapWorks } from '../bubblewrap.ts'
import { type DefineTest, skipUnless } from '../skip.ts'
import { Box } from './box.ts'
import {
  isRoot,
  LAUNCHERS,
  type Launcher,
  ordinary,
  PEN,
  REVIEW_LAUNCHERS,
  SLOWER,
  triesContainers,
  triesOthers,
} from './launcher.ts'
import { TRAITS, type Trait } from './test-backend.ts'

const ready = bwrapWorks() && spawnSync(PEN, ['version']).status === 0 && (!isRoot || ordinary !== undefined)
export const onLinux = skipUnless(ready, 'bubblewrap that works, a built pen or the test user is missing')

export interface Options {
  readonly timeout?: number
  /** Which users the claim is about. */
  readonly only?: (launcher: Launcher) => boolean
  /** Properties of a backend without which the claim has no meaning. */
  readonly needs?: Trait
  /**
   * An ordinary user is enough where root's case is the same: git on the host, the search for denied names, and races
   * that the supervisor watches. Containers run it for every user in turn.
   */
  readonly users?: 'ordinary'
  /** Why the process backend alone is enough: the claim has no part inside a sandbox. */
  readonly once?: string
  /** It holds with `--review` too: `all`, or for an ordinary user's processes, where the other cases are the same. */
  readonly review?: 'all' | 'ordinary'
  /** Requirements beyond a sandbox. */
  readonly define?: DefineTest
  /** It looks at every descendant of this process, so nothing else may run. */
  readonly alone?: boolean
}

/** Defines one test for each launcher. The box belongs to the user and is removed afterwards. */
export function conformance(title: string, body: (box: Box) => Promise<void>, options: Options = {}): void {
  onEachLauncher(title, launcher => inBox(launcher, body), options)
}

export function onEachLauncher(
  title: string,
  body: (launcher: Launcher) => Promise<void>,
  {
    timeout = 60_000,
    only = () => true,
    users,
    needs,
    once,
    review,
    alone = false,
    define = onLinux,
  }: Options = {},
): void {
  const asked = LAUNCHERS.filter(only)
  const these = users === 'ordinary' && !triesContainers ? asked.slice(-1) : asked
  const here = these.filter(({ name, traits, isolation }) => {
    const why =
      needs !== undefined && !traits.has(needs) ? TRAITS[needs] : isolation === 'process' ? undefined : once
    if (why !== undefined) console.log(`not of ${name}: ${title} (${why})`)
    return why === undefined
  })
  const forOrdinary = review === 'ordinary' && !triesContainers ? REVIEW_LAUNCHERS.slice(-1) : []
  const layered = review === 'all' ? REVIEW_LAUNCHERS : forOrdinary
  const tried = [...inTurn(here), ...inTurn(layered)]
  const start = triesContainers && !alone ? atOnce(tried, body) : body
  for (const launcher of tried) {
    const { name, missing } = launcher
    const defineHere = missing === undefined ? define : skipUnless(false, missing)
    defineHere(`${title} (${name})`, () => start(launcher), timeout * SLOWER)
  }
}

/**
 * Every claim on every engine takes minutes (`npm run test:engines`). By default each claim runs on one engine,
 * in rotation.
 */
const TRIES_ALL = process.env['PEN_EVERY_ENGINE'] === '1'
if (triesContainers && !TRIES_ALL)
  console.log('each claim on one engine, in turn; on all of them: npm run test:engines')
let turn = 0

export function inTurn<Of extends { readonly missing?: string | undefined }>(
  here: readonly Of[],
): readonly Of[] {
  if (!triesContainers || TRIES_ALL) return here
  const there = here.filter(({ missing }) => missing === undefined)
  if (there.length === 0) return here
  const one = there[turn++ % there.length]
  return here.filter(other => other === one || other.missing !== undefined)
}

/** Engines mostly wait. The first test of a claim starts the runs of the others too. */
function atOnce(here: readonly Launcher[], body: (launcher: Launcher) => Promise<void>): typeof body {
  let begun: Map<Launcher, Promise<void>> | undefined
  return async launcher => {
    begun ??= new Map(here.filter(one => one.missing === undefined).map(one => [one, body(one)]))
    // Its own test reports each result.
    for (const run of begun.values()) run.catch(() => undefined)
    await begun.get(launcher)
  }
}

/** For commands that start no sandbox: once for each kind of user. */
export const onTheHost: typeof conformance = triesOthers ? () => undefined : conformance

async function inBox(launcher: Launcher, body: (box: Box) => Promise<void>): Promise<void> {
  const box = new Box(launcher)
  try {
    await body(box)
  } finally {
    box.remove()
  }
}
