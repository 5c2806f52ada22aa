/**
 * A compiled Bun program still obeys environment variables of Bun's own: `BUN_OPTIONS="--preload ./x.js"` runs code,
 * `BUN_BE_BUN=1` turns the program into Bun itself, `BUN_INSPECT` opens a debugger port that any local user can reach,
 * the bytecode ones write files, and the crash ones run curl. A project can set them (direnv, editors that load `.env` into their terminals),
 * and no build flag turns them off. So their names are taken out of the binary.
 *
 * Only the first byte of a name becomes NUL. `getenv("")` finds nothing in every C library, and a name that begins
 * with NUL cannot exist in an environment. The tails stay, because linkers let shorter strings share them.
 */

/** Each must be found, or the build stops: a new Bun that spells them otherwise would ship an open door. */
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
 * Options of the JavaScript engine, as `BUN_JSC_…`: the first replaces functions of the program by those of a file, the second reads
 * more options from one, the others write files. An image may set them for pen's agent.
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
/** Their names share the tails of these. */
const ENGINE_PREFIX = 'JSC_'

/** Changes `binary` in place. Throws when a door cannot be found as a C string of its own. */
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
