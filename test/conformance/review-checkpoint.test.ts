/** `pen checkpoint` and `pen rollback` of a sandbox that writes. */
import { expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../until.ts'
import { conformance } from './conformance.ts'
import { PEN } from './launcher.ts'
import { stateDir } from './pen-command.ts'

const REVIEW = { flags: ['--review'] }
/** The numbers of the files differ by one at most, unless they are of different moments. */
const WRITER = 'i=0; while :; do i=$((i+1)); for f in x y z; do echo $i >$f.new; mv $f.new $f; done; done'

conformance(
  'P23 a checkpoint of a sandbox that writes is of one moment, and rollback brings it back',
  async box => {
    const pen = (args: string): string => box.host(`'${PEN}' ${args} 2>&1 || true`)
    const running = box.start(['sh', '-c', `echo up; ${WRITER}`], { ...REVIEW, through: 'exec "$@"' })
    await running.printed('up')
    const upper = join(stateDir(box), 'review/upper')
    const numbers = (): number[] =>
      ['x', 'y', 'z'].map(name => Number(readFileSync(join(upper, name), 'utf8')))
    await until(() => existsSync(join(upper, 'z')) && existsSync(join(stateDir(box), 'review.pause')))
    const made = pen('checkpoint')
    const [, , then] = numbers()
    await until(() => numbers()[2] !== then)
    running.child.kill('SIGTERM')
    await running.ended
    const last = numbers()
    if (box.launcher.name === 'docker, as an ordinary user') {
      // Its processes belong to another user.
      expect(made).toContain('pen cannot pause the programs of this sandbox')
      return
    }
    expect(made).toContain('checkpoint 1 (')
    expect(pen('rollback 1')).toContain('the layer is as it was at 1')
    const [x = 0, y = 0, z = 0] = numbers()
    expect([x - z <= 1, x >= y && y >= z, z < (last[2] ?? 0)]).toEqual([true, true, true])
    const inside = await box.sh('cat x y z', REVIEW)
    expect(inside.stdout).toBe(`${x}\n${y}\n${z}\n`)
  },
)
