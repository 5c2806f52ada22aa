/** A live config of the user with a mount. */
import { join } from 'node:path'
import { sandboxId } from '../../src/config/project.ts'
import type { Box } from './box.ts'

export function mounting(box: Box, ...mounts: readonly object[]): void {
  const state = box.directory(join(box.home, '.pen/sandboxes', sandboxId(box.project)), 0o700)
  box.file(join(state, 'config.json'), JSON.stringify({ version: 1, mounts }), 0o600)
}
