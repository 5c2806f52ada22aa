/** The one line that pen writes into `~/.ssh/config`, on request. Everything else in the file stays byte for byte. */
import { existsSync, lstatSync, mkdirSync, rmSync, statSync, unlinkSync } from 'node:fs'
import { writeFileAtomically } from '../base/atomic-file.ts'
import { PenError } from '../base/error.ts'
import { dirname } from '../base/posix-path.ts'
import { readRegularFile } from '../base/regular-file.ts'
import { removeIfEmpty } from '../base/remove-if-empty.ts'
import { locate } from '../config/locate.ts'
import { hostsFile, quoted, whileLocked } from './ssh-host.ts'

interface Place {
  readonly home: string
  /** `~/.pen`. */
  readonly state: string
}

const MAX_BYTES = 4 * 2 ** 20

/** `~/.ssh/config` may be a link into a repository of settings. The link stays. */
export const userConfig = ({ home }: Place): string => locate(`${home}/.ssh/config`).real

const lineOf = ({ state }: Place): Buffer => Buffer.from(`Include ${quoted(hostsFile(state))}\n`)

/** What pen had to make. It is removed again when nothing else is in it. */
const madeFile = ({ state }: Place): string => `${state}/ssh/made`

export const hasInclude = (place: Place): boolean => offsetIn(bytesOf(userConfig(place)), lineOf(place)) >= 0

/** Returns false when the line is there already. At the top: a line below a `Host` would count for that host only. */
export const addInclude = (place: Place): Promise<boolean> =>
  whileLocked(place.state, () => {
    const file = userConfig(place)
    const [before, line] = [bytesOf(file), lineOf(place)]
    if (offsetIn(before, line) >= 0) return false
    const directory = dirname(file)
    const made = existsSync(file) ? '' : existsSync(directory) ? 'file' : 'directory'
    mkdirSync(directory, { recursive: true, mode: 0o700 })
    refuseOthers(directory)
    writeFileAtomically(madeFile(place), made)
    replace(file, Buffer.concat([line, before ?? Buffer.alloc(0)]))
    return true
  })

/** Returns false when there is no such line. */
export const removeInclude = (place: Place): Promise<boolean> =>
  whileLocked(place.state, () => {
    const file = userConfig(place)
    const [before, line] = [bytesOf(file), lineOf(place)]
    const at = offsetIn(before, line)
    if (before === undefined || at < 0) return false
    refuseOthers(dirname(file))
    const rest = Buffer.concat([before.subarray(0, at), before.subarray(at + line.length)])
    const made = readRegularFile(madeFile(place), { maxBytes: 64 })?.toString()
    if (rest.length > 0 || made === '' || made === undefined) replace(file, rest)
    else {
      unlinkSync(file)
      if (made === 'directory') removeIfEmpty(dirname(file))
    }
    rmSync(madeFile(place), { force: true })
    return true
  })

const bytesOf = (file: string): Buffer | undefined => readRegularFile(file, { maxBytes: MAX_BYTES })

/** -1 when the file has no such line. */
function offsetIn(bytes: Buffer | undefined, line: Buffer): number {
  if (bytes === undefined) return -1
  if (bytes.subarray(0, line.length).equals(line)) return 0
  const at = bytes.indexOf(Buffer.concat([Buffer.from('\n'), line]))
  return at < 0 ? -1 : at + 1
}

function replace(file: string, bytes: Buffer): void {
  const stats = statSync(file, { throwIfNoEntry: false })
  writeFileAtomically(file, bytes, stats === undefined ? {} : { mode: stats.mode & 0o7777 })
}

/** Root with another user's HOME would write for that user. */
function refuseOthers(directory: string): void {
  const { uid } = lstatSync(directory)
  if (uid === process.geteuid?.()) return
  throw new PenError('STATE', {
    what: `the directory belongs to another user (uid ${uid}); nothing was changed`,
    at: directory,
    hint: 'run it as that user, or set HOME to your home directory',
  })
}
