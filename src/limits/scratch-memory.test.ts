import { expect, test } from 'bun:test'
import { MemoryFiles } from './scratch-memory.ts'

const MIB = 2 ** 20

/** Holds ten memory files of 1 MiB each, and hundreds of other descriptors around them. */
const HOLDER = `import os, sys
rest = [os.open('/dev/null', os.O_RDONLY) for i in range(150)]
files = [os.memfd_create('m') for i in range(10)]
for fd in files: os.write(fd, b'x' * ${MIB})
rest += [os.open('/dev/null', os.O_RDONLY) for i in range(150)]
print('up', flush=True)
sys.stdin.read()`

test('no number of descriptors hides a memory file: several looks see what one cannot', async () => {
  const holder = Bun.spawn(['python3', '-c', HOLDER], { stdin: 'pipe', stdout: 'pipe' })
  try {
    await holder.stdout.getReader().read()
    const members = [{ pid: holder.pid, depth: 0 }]
    expect(new MemoryFiles().look(members)).toBe(10 * MIB)
    const few = new MemoryFiles(50)
    const seen = Array.from({ length: 20 }, () => few.look(members))
    expect(seen[0]).toBeLessThan(10 * MIB)
    // From the end of the first round on.
    expect(new Set(seen.slice(7))).toEqual(new Set([10 * MIB]))
  } finally {
    holder.kill('SIGKILL')
  }
})
