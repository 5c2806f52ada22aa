/**
 * The built filters. Every run needs one, and compiling it takes 3 ms of a run's 10. So a macro compiles the rules when
 * pen is built, and a start only decodes 2.6 kB.
 */
import { compiledFilter } from './compile.ts' with { type: 'macro' }
import type { FilterOptions } from './rules.ts'
import type { SeccompArch } from './syscalls.ts'

const FILTERS: Readonly<Record<SeccompArch, Readonly<Record<FilterOptions['exec'], string>>>> = {
  x64: { any: compiledFilter('x64', 'any'), listed: compiledFilter('x64', 'listed') },
  arm64: { any: compiledFilter('arm64', 'any'), listed: compiledFilter('arm64', 'listed') },
}

const HERE: SeccompArch = process.arch === 'arm64' ? 'arm64' : 'x64'

/** The seccomp filter as bytes of `struct sock_filter[]`, for `bwrap --seccomp FD`. */
export const seccompFilter = ({ exec }: FilterOptions, arch = HERE): Uint8Array =>
  Buffer.from(FILTERS[arch][exec], 'base64')
