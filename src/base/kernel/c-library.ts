/** The C library of this system, for calls that neither Node nor Bun offers. */
import { dlopen, type FFIFunction, type Library } from 'bun:ffi'
import { PenError } from '../error.ts'

/** glibc, then musl under the name that distributions use, then under its own. */
const NAMES =
  process.platform === 'darwin'
    ? ['libSystem.B.dylib']
    : ['libc.so.6', `libc.musl-${process.arch === 'arm64' ? 'aarch64' : 'x86_64'}.so.1`, 'libc.so']

/** Loaded once, at first use: it takes half a millisecond, and most runs do not need it. */
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
