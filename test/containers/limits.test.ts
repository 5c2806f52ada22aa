/** Limits of a container, enforced by its engine or watched by pen. The events are those of every other sandbox. */
import { expect } from 'bun:test'
import { everyEngine } from '../engines/every-engine.ts'
import { ContainerProject } from './sandbox.ts'

const onEachEngine = everyEngine()

const hits = (project: ContainerProject) =>
  project
    .audit()
    .filter(({ kind }) => kind === 'limit-hit')
    .map(({ limit, reason }) => `${limit} ${reason}`)

onEachEngine('P13 memory beyond the limit ends the sandbox, and is reported and recorded', async engine => {
  using project = new ContainerProject(engine)
  const over = project.sh(
    'python3 -c "import time; x = bytearray(400 << 20); time.sleep(9); print(len(x))"',
    '--limit',
    'memory=128MiB',
  )
  expect([over.code, over.out]).toEqual([137, ''])
  expect(over.err).toContain('limits.memory is 128 MiB')
  expect(hits(project)).toEqual(['memory killed'])
  const well = project.sh('python3 -c "x = bytearray(8 << 20); print(len(x))"', '--limit', 'memory=128MiB')
  expect([well.code, well.out]).toEqual([0, '8388608\n'])
})

onEachEngine(
  'P13 processes beyond the limit are refused, reported and recorded; those within it run',
  async engine => {
    using project = new ContainerProject(engine)
    const fork = (n: number) => `for i in $(seq ${n}); do sleep 1 & done; wait; echo all`
    const over = project.sh(fork(90), '--limit', 'pids=40')
    expect([over.out, over.err.includes('limits.pids (40) was reached')]).toEqual(['', true])
    expect(hits(project)).toEqual(['pids refused'])
    expect(project.sh(fork(25), '--limit', 'pids=40').out).toBe('all\n')
  },
)

onEachEngine('P13 open files are limited, whatever the engine’s default is', async engine => {
  using project = new ContainerProject(engine)
  expect(project.sh('ulimit -n; ulimit -Hn; ulimit -c', '--limit', 'files=123').out).toBe('123\n123\n0\n')
})
