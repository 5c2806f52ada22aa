/**
 * Snapshots of a guest that has booted and waits. One is taken before the guest knows a project, a variable or a secret,
 * so every sandbox with the same machine can start from it. It is a cache: a snapshot that is absent, damaged or of
 * another machine is a cold boot, and that takes a new one.
 */
import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from 'node:fs'
import { tryCall } from '../../base/kernel/system-call.ts'

interface Manifest {
  /** Where in the guest's memory each block of `ram` belongs. The rest is zero. */
  readonly blocks: readonly number[]
  readonly ram: string
  readonly state: string
}

/** The memory of a guest is a multiple of it. */
const BLOCK = 2 ** 16
const ZEROS = new Uint8Array(BLOCK)
/** Each has about 100 MB. */
const MOST = 4
const SEEK_DATA = 3
/** Followed by the process that writes it. */
const UNFINISHED = '.new-'

export class SnapshotCache {
  readonly #all: string
  readonly #dir: string

  constructor(cacheDir: string, key: string) {
    this.#all = `${cacheDir}/vm-snapshots`
    this.#dir = `${this.#all}/${new Bun.CryptoHasher('sha256').update(key).digest('hex').slice(0, 32)}`
  }

  /** The state of the devices, or undefined when there is no snapshot. The caller closes it. */
  open(): Snapshot | undefined {
    try {
      const manifest = JSON.parse(readFileSync(`${this.#dir}/manifest.json`, 'utf8')) as Manifest
      const state = openOwn(`${this.#dir}/state`)
      const now = new Date()
      utimesSync(this.#dir, now, now)
      return new Snapshot(manifest, state, openOwn(`${this.#dir}/ram`))
    } catch {
      return undefined
    }
  }

  /** The guest must not run meanwhile. `writeState` writes the state of the devices into a descriptor. */
  async save(memory: number, writeState: (fd: number) => Promise<void>): Promise<void> {
    mkdirSync(this.#all, { recursive: true, mode: 0o700 })
    this.#removeUnfinished()
    const work = `${this.#all}/${UNFINISHED}${process.pid}`
    mkdirSync(work, { mode: 0o700 })
    try {
      const state = openSync(`${work}/state`, 'wx+', 0o600)
      await writeState(state).finally(() => closeSync(state))
      const file = openSync(`${work}/ram`, 'wx', 0o600)
      const copied = copyMemory(memory, file)
      closeSync(file)
      const manifest: Manifest = { ...copied, state: digestOf(readFileSync(`${work}/state`)) }
      writeFileSync(`${work}/manifest.json`, JSON.stringify(manifest), { mode: 0o600 })
      this.forget()
      renameSync(work, this.#dir)
      this.#removeOld()
    } finally {
      rmSync(work, { recursive: true, force: true })
    }
  }

  forget(): void {
    rmSync(this.#dir, { recursive: true, force: true })
  }

  /** Of a pen that was killed meanwhile. */
  #removeUnfinished(): void {
    for (const name of readdirSync(this.#all)) {
      const isLeft = name.startsWith(UNFINISHED) && !existsSync(`/proc/${name.slice(UNFINISHED.length)}`)
      if (isLeft) rmSync(`${this.#all}/${name}`, { recursive: true, force: true })
    }
  }

  #removeOld(): void {
    const found = readdirSync(this.#all).map(name => `${this.#all}/${name}`)
    const byUse = found.map(dir => ({ dir, at: statSync(dir).mtimeMs })).sort((a, b) => b.at - a.at)
    for (const { dir } of byUse.slice(MOST)) rmSync(dir, { recursive: true, force: true })
  }
}

export class Snapshot {
  readonly state: number
  readonly #ram: number
  readonly #manifest: Manifest

  constructor(manifest: Manifest, state: number, ram: number) {
    this.#manifest = manifest
    this.state = state
    this.#ram = ram
  }

  /** Fills the guest's memory. False when a byte is not the one that was saved. */
  load(memory: number): boolean {
    const { blocks, ram, state } = this.#manifest
    if (digestOf(readFileSync(`/proc/self/fd/${this.state}`)) !== state) return false
    const block = new Uint8Array(BLOCK)
    let digest = 0n
    for (const [i, offset] of blocks.entries()) {
      if (readSync(this.#ram, block, 0, BLOCK, i * BLOCK) !== BLOCK) return false
      digest = Bun.hash.xxHash3(block, digest)
      writeSync(memory, block, 0, BLOCK, offset)
    }
    return digest.toString(16) === ram
  }

  close(): void {
    closeSync(this.state)
    closeSync(this.#ram)
  }
}

/** Copies what is not zero. */
function copyMemory(memory: number, file: number): Pick<Manifest, 'blocks' | 'ram'> {
  const blocks: number[] = []
  const block = new Uint8Array(BLOCK)
  let digest = 0n
  for (let at = 0; ; at += BLOCK) {
    const data = tryCall('lseek', memory, at, SEEK_DATA)
    if (data < 0) return { blocks, ram: digest.toString(16) }
    at = data - (data % BLOCK)
    readSync(memory, block, 0, BLOCK, at)
    if (Buffer.compare(block, ZEROS) === 0) continue
    writeSync(file, block)
    digest = Bun.hash.xxHash3(block, digest)
    blocks.push(at)
  }
}

const digestOf = (bytes: Uint8Array): string => Bun.hash.xxHash3(bytes).toString(16)

/** Opens a regular file of this user. pen alone writes the cache. */
function openOwn(path: string): number {
  const fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  const found = fstatSync(fd)
  if (found.isFile() && found.uid === process.getuid?.()) return fd
  closeSync(fd)
  throw new Error(`${path} is not a file of this user`)
}
