/** `tools.exec: "listed"`, enforced by the guest's own kernel. */
import { expect } from 'bun:test'
import { EVERYBODY } from '../conformance/launcher.ts'
import { onMachine, projectOf, startMachine } from './machine.ts'

const who = EVERYBODY.at(-1)

const TRY = `
run() { "$@" >/dev/null 2>&1 && echo "ran $*"; }
for place in . /tmp /dev/shm "$HOME"; do
  cp /usr/bin/true $place/own
  run $place/own
  run /lib64/ld-linux-x86-64.so.2 $place/own
done
cp /lib/x86_64-linux-gnu/libz.so.1 own.so
LD_PRELOAD=$PWD/own.so /usr/bin/true
run python3 -c 'import os; os.memfd_create("x")'
run /usr/bin/true
run pen version
`

onMachine(
  'P12 with "listed" no file that the guest writes is executed or mapped, and the system’s are',
  async () => {
    if (who === undefined) return
    const here = projectOf(who, { tools: { exec: 'listed' } })
    try {
      await startMachine(here)
      const { stdout, stderr } = await here.sh(TRY)
      expect(stdout.trim().split('\n')).toEqual(['ran /usr/bin/true', 'ran pen version'])
      expect(stderr).toContain('cannot be preloaded')
    } finally {
      await here.pen('stop')
      here.box.remove()
    }
  },
  120_000,
)
