/** Defines the tests of a promise: one for each backend and each kind of user. */
import { spawnSync } from 'node:child_process'
import { skipUnless } from '../skip.ts'
import { Box } from './box.ts'
import { isRoot, LAUNCHERS, type Launcher, ordinary, PEN } from './launcher.ts'

const ready =
  process.platform === 'linux' &&
  spawnSync('bwrap', ['--ro-bind', '/', '/', '--unshare-all', 'true']).status === 0 &&
  spawnSync(PEN, ['version']).status === 0 &&
  (!isRoot || ordinary !== undefined)
export const onLinux = skipUnless(ready, 'bubblewrap that works, a built pen or the test user is missing')

/** Defines one test for each launcher. The box is the user's, and is removed afterwards. */
export function conformance(
  title: string,
  body: (box: Box) => Promise<void>,
  options: { readonly timeout?: number; readonly only?: (launcher: Launcher) => boolean } = {},
): void {
  for (const launcher of LAUNCHERS.filter(options.only ?? (() => true)))
    onLinux(
      `${title} (${launcher.name})`,
      async () => {
        const box = new Box(launcher)
        try {
          await body(box)
        } finally {
          box.remove()
        }
      },
      options.timeout ?? 30_000,
    )
}
