/** A machine with neither bubblewrap nor user namespaces: a mount namespace hides them. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { EVERYBODY, isRoot, ordinary } from '../conformance/launcher.ts'
import { skipUnless } from '../skip.ts'
import { KEEP_SOFT, SOFT, SoftBox } from './soft-box.ts'

const HIDE = `for tool in bwrap unshare nsenter podman docker; do for dir in /usr/bin /usr/sbin /usr/local/bin; do
  [ ! -e $dir/$tool ] || mount --bind /dev/null $dir/$tool || exit 99; done; done`

/** In its own user namespace, which can limit further ones. */
const WITHOUT_NAMESPACES = [
  'unshare',
  '--user',
  '--map-root-user',
  '--mount',
  'sh',
  '-c',
  `${HIDE}; echo 0 > /proc/sys/user/max_user_namespaces || exit 99; exec "$@"`,
  'sh',
]
const WITHOUT_TOOLS = ['unshare', '--mount', 'sh', '-c', `${HIDE}; exec "$@"`, 'sh']

const works = isRoot && ordinary !== undefined && spawnSync('unshare', ['--mount', 'true']).status === 0
const onMachine = skipUnless(works, 'hiding tools needs root, unshare and the test user')

for (const who of EVERYBODY)
  onMachine(
    `without bubblewrap and namespaces a run stops with the fix, and only the soft sandbox that is asked for by name runs, or stays (${who.name})`,
    async () => {
      const box = new SoftBox(who)
      const around = who.uid === 0 ? WITHOUT_TOOLS : WITHOUT_NAMESPACES
      try {
        const plain = await box.start(['run', '--offline', '--', 'touch', 'ran'], { around }).ended
        expect(plain.code).toBe(125)
        expect(plain.stderr).toMatch(/fix: install (bubblewrap|util-linux)/)
        expect(plain.stderr).not.toContain('SOFT')
        const kept = await box.start(['run', '--isolation', 'container', '--', 'touch', 'ran'], { around })
          .ended
        expect(kept.code).toBe(125)
        expect(box.has('ran')).toBe(false)
        const soft = await box.start([...SOFT, 'touch', 'ran'], { around }).ended
        expect([soft.code, box.has('ran')]).toEqual([0, true])
        expect(soft.stderr).toContain('SOFT_SANDBOX=true')
        expect(box.of('tool-allowed')).toMatchObject([
          { program: expect.stringMatching(/\/touch$/), soft: true },
        ])
        const stays = await box.start(['start', '--detach'], { around }).ended
        expect([stays.code, stays.stderr.includes('SOFT')]).toEqual([125, false])
        box.config({ tools: { allow: ['touch'] } })
        const started = await box.start(KEEP_SOFT, { around }).ended
        expect([started.code, started.stderr]).toEqual([0, expect.stringContaining('SOFT_SANDBOX=true')])
        expect((await box.pen('exec', '--', 'touch', 'stayed')).code).toBe(0)
        expect(box.has('stayed')).toBe(true)
      } finally {
        await box.pen('stop')
        box.remove()
      }
    },
    30_000,
  )
