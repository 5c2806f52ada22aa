/**
 * A hostile neighbour: while it runs, `a` alternates between a directory and a link to another place, without a
 * gap.
 */
import { dlopen } from 'bun:ffi'

const [workspace = '', seconds = '1'] = process.argv.slice(2)
process.chdir(workspace)
const AT_FDCWD = -100
const RENAME_EXCHANGE = 2
const { renameat2 } = dlopen('libc.so.6', {
  renameat2: { args: ['i32', 'buffer', 'i32', 'buffer', 'u32'], returns: 'i32' },
}).symbols
const [a, link] = [Buffer.from('a\0'), Buffer.from('link\0')]
const late = performance.now() + Number(seconds) * 1000
let swaps = 0
while (performance.now() < late) if (renameat2(AT_FDCWD, a, AT_FDCWD, link, RENAME_EXCHANGE) === 0) swaps++
process.stdout.write(String(swaps))
