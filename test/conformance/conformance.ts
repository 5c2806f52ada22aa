/** Defines the tests of a promise: one for each backend and each kind of user. */
import { spawnSync } from 'node:child_process'
import { skipUnless } from '../skip.ts'
import { Box } from './box.ts'
import { isRoot, LAUNCHERS, type Launcher, ordinary, PEN, triesContainers } from './launcher.ts'
import { TRAITS, type Trait } from './test-backend.ts'

const ready =
  process.platform === 'linux' &&
  spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-all', 'true']).status === 0 &&
  spawnSync(PEN, ['version']).status === 0 &&
  (!isRoot || ordinary !== undefined)
export const onLinux = skipUnless(ready, 'bubblewrap that works, a built pen or the test user is missing')

interface Options {
  readonly timeout?: number
  /** Which users the claim is about. */
  readonly only?: (launcher: Launcher) => boolean
  /** Without which there is nothing to claim. */
  readonly needs?: Trait
}

/** Defines one test for each launcher. The box is the user's, and is removed afterwards. */
export function conformance(title: string, body: (box: Box) => Promise<void>, options: Options = {}): void {
  const { timeout = 30_000, only = () => true, needs } = options
  for (const launcher of LAUNCHERS.filter(only)) {
    const { name, missing, traits } = launcher
    if (needs !== undefined && !traits.has(needs)) {
      console.log(`not of ${name}: ${title} (${TRAITS[needs]})`)
      continue
    }
    const define = missing === undefined ? onLinux : skipUnless(false, missing)
    define(`${title} (${name})`, () => inBox(launcher, body), timeout)
  }
}

/** For commands that start no sandbox: once for each kind of user. */
export const onTheHost: typeof conformance = triesContainers ? () => undefined : conformance

async function inBox(launcher: Launcher, body: (box: Box) => Promise<void>): Promise<void> {
  const box = new Box(launcher)
  try {
    await body(box)
  } finally {
    box.remove()
  }
}
