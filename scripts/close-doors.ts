/**
 * A compiled Bun program still obeys Bun's environment variables. `BUN_OPTIONS="--preload ./x.js"` runs code.
 * `BUN_BE_BUN=1` turns the program into Bun itself. `BUN_INSPECT` opens a debugger port to every local user.
 * Others write files or run curl. A project can set them (direnv, editors that load `.env` into their
 * terminals), and no build flag turns them off. So this removes their names from the binary.
 *
 * Only the first byte of a name becomes NUL. `getenv("")` finds nothing in every C library, and no environment
 * contains a name that begins with NUL. The tails stay, because linkers let shorter strings share them.
 */

/** The build stops when one is not found: a new Bun that spells them differently would ship an open door. */
export const DOORS = [
  'BUN_OPTIONS',
  'BUN_BE_BUN',
  'BUN_INSPECT',
  'BUN_INSPECT_CONNECT_TO',
  'BUN_INSPECT_PRELOAD',
  'BUN_BYTECODE_ORDER_OUT',
  'BUN_BYTECODE_ORDER_NAMES_OUT',
  'BUN_BYTECODE_DIGEST_OUT',
  'BUN_ENABLE_CRASH_REPORTING',
  'BUN_CRASH_REPORT_URL',
] as const

/**
 * Options of the JavaScript engine, as `BUN_JSC_…`. The first replaces the program's functions by those of a
 * file, the second reads more options from a file, the others write files. An image may set them for pen's exec
 * daemon.
 */
export const ENGINE_DOORS = [
  'functionOverrides',
  'configFile',
  'textMarkersDirectory',
  'jitDumpDirectory',
  'irDumpDirectory',
  'samplingProfilerPath',
] as const

const NUL = '\0'
/** Names that share the tails of these. */
const ENGINE_PREFIX = 'JSC_'

/** Changes `binary` in place. Throws when a door is not found as a separate C string. */
export function closeDoors(binary: Buffer): void {
  for (const name of DOORS) close(binary, name, [0])
  for (const name of ENGINE_DOORS) close(binary, `${ENGINE_PREFIX}${name}`, [0, ENGINE_PREFIX.length])
}

function close(binary: Buffer, name: string, bytes: readonly number[]): void {
  const text = Buffer.from(`${NUL}${name}${NUL}`, 'latin1')
  let found = 0
  for (let at = binary.indexOf(text); at !== -1; at = binary.indexOf(text, at + 1)) {
    for (const byte of bytes) binary[at + 1 + byte] = 0
    found += 1
  }
  if (found === 0)
    throw new Error(
      `${name} is not in the compiled binary where it was expected: find out how this Bun reads it`,
    )
}
