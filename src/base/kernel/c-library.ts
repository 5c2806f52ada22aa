/** The C library of this system, for the calls that neither Node nor Bun has a name for. */
import { dlopen, type FFIFunction, type Library } from 'bun:ffi'
import { PenError } from '../error.ts'

/** glibc; musl as distributions name it; musl as it names itself. */
const NAMES =
  process.platform === 'darwin'
    ? ['libSystem.B.dylib']
    : ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`, 'libc.so']

/** Loaded at first use, and once: it takes half a millisecond, which most runs need not pay. */
export function cLibrary<const S extends Record<string, FFIFunction>>(
  signatures: S,
): () => Library<S>['symbols'] {
  let symbols: Library<S>['symbols'] | undefined
  return () => {
    symbols ??= load(signatures)
    return symbols
  }
}

function load<S extends Record<string, FFIFunction>>(signatures: S): Library<S>['symbols'] {
  let why: unknown
  for (const name of NAMES)
    try {
      return dlopen(name, signatures).symbols
    } catch (error) {
      why = error
    }
  throw new PenError('BACKEND', {
    what: 'the C library could not be loaded',
    hint: 'report this with `pen version --json`',
    cause: why,
  })
}
