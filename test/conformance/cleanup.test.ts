import { expect } from 'bun:test'
import { chmodSync, mkdirSync, readdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { cgroupParents, findLimitSupport } from '../../src/limits/probe.ts'
import { auditRecords } from '../audit-records.ts'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'

const PROCESS_ONLY = 'containers report by the same undo stack'
const PARENTS = cgroupParents(findLimitSupport())
const hasCgroups = PARENTS.length > 0

const stateOf = (box: Box): string => {
  const all = join(box.home, '.pen/sandboxes')
  return join(all, readdirSync(all)[0] ?? '')
}

/** The cgroups of one pen, by its pid. */
function cgroupsOf(pid: number): string[] {
  return PARENTS.flatMap(parent =>
    readdirSync(parent)
      .filter(name => name.startsWith(`pen-${pid}-`))
      .map(name => join(parent, name)),
  )
}

const failuresOf = (box: Box) =>
  auditRecords(stateOf(box))
    .filter(({ kind }) => kind === 'cleanup-failed')
    .map(({ what, fix, verdict }) => ({ what, fix, verdict }))

conformance(
  'P14 a cgroup that stays busy is reported on stderr and in the audit',
  async box => {
    const run = box.start(['/bin/sh', '-c', 'echo up; sleep 0.5; exit 5'], { through: 'exec "$@"' })
    await run.printed('up')
    const busy = cgroupsOf(run.child.pid ?? 0).map(dir => join(dir, 'busy'))
    expect(busy).not.toEqual([])
    for (const dir of busy) mkdirSync(dir)
    try {
      const { code, stderr } = await run.ended
      expect(stderr).toContain(
        'pen: could not clean up the cgroup: it still has processes or child cgroups (',
      )
      expect(stderr).toContain('  fix: pen gc\n')
      expect(code).toBe(5)
      expect(failuresOf(box)).toEqual([{ what: 'the cgroup', fix: 'pen gc', verdict: 'error' }])
    } finally {
      for (const dir of busy) {
        rmdirSync(dir)
        rmdirSync(join(dir, '..'))
      }
    }
  },
  { once: PROCESS_ONLY, only: ({ who }) => hasCgroups && who.uid === process.getuid?.() },
)

conformance(
  'P14 a run directory that cannot be removed is reported; one that can is not',
  async box => {
    const clean = await box.sh('exit 5')
    expect([clean.code, clean.stderr.includes('clean up'), failuresOf(box)]).toEqual([5, false, []])
    const inside = join(stateOf(box), 'inside')
    const run = box.start(['/bin/sh', '-c', 'echo up; sleep 0.5; exit 5'])
    await run.printed('up')
    chmodSync(inside, 0o500)
    try {
      const { code, stderr } = await run.ended
      expect(stderr).toMatch(/pen: could not clean up the run directory: .*EACCES.*\n {2}fix: pen gc\n/)
      expect(code).toBe(5)
      expect(failuresOf(box)).toEqual([{ what: 'the run directory', fix: 'pen gc', verdict: 'error' }])
    } finally {
      chmodSync(inside, 0o700)
    }
    box.host(`test -n "$(ls ${inside})"`)
  },
  // Root may remove a name from any directory.
  { once: PROCESS_ONLY, only: ({ who }) => who.uid !== 0 },
)
