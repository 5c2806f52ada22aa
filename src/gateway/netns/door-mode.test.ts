import { describe, expect } from 'bun:test'
import { join } from 'node:path'
import { onlyWhen } from '../../../test/skip.ts'
import { EXIT } from '../../base/error.ts'
import { descriptorPair } from '../../base/kernel/pass-descriptors.ts'

const MAIN = join(import.meta.dir, '../../main.ts')
const onLinux = onlyWhen(process.platform === 'linux')

const pen = (argv: readonly string[], fd3: 'ignore' | 'pipe' | number) =>
  Bun.spawnSync([process.execPath, MAIN, ...argv], { stdio: ['ignore', 'pipe', 'pipe', fd3], env: {} })

describe('the door mode', () => {
  onLinux('is not a verb: without the descriptor that pen passes, it does nothing', () => {
    for (const fd3 of ['ignore', 'pipe'] as const) {
      const { exitCode, stderr } = pen(['__door', 'ports', '80'], fd3)
      expect({ exitCode, said: stderr.toString().includes('not a verb') }).toEqual({
        exitCode: EXIT.usage,
        said: true,
      })
    }
  })

  onLinux('changes nothing outside its own namespace, and reports an error', () => {
    if (process.getuid?.() === 0) return // Root's own `lo` is up already: there is nothing to be refused.
    const [ours, theirs] = descriptorPair()
    expect(pen(['__door', 'ports', '80'], theirs).exitCode).not.toBe(EXIT.ok)
    expect(ours).toBeGreaterThan(2)
  })
})
