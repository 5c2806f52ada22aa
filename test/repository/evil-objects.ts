/** Objects and refs that no git command would write, for a sandbox's own repository. */
import { createHash } from 'node:crypto'
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { deflateSync } from 'node:zlib'
import { TwoRepositories } from './two-repositories.ts'

export function started(): TwoRepositories {
  const two = new TwoRepositories()
  two.host.commit('one')
  return two.start()
}

/** Writes an object into the sandbox's repository without any check. */
export function put(two: TwoRepositories, type: string, body: Buffer | string): string {
  const ran = two.tryInside(['hash-object', '--literally', '-t', type, '-w', '--stdin'], { input: body })
  if (ran.code !== 0) throw new Error(ran.stderr)
  return ran.stdout.trim()
}

export const entry = (mode: string, name: string, id: string): Buffer =>
  Buffer.concat([Buffer.from(`${mode} ${name}\0`, 'latin1'), Buffer.from(id, 'hex')])

/** A ref with one commit of this tree. */
export function branch(two: TwoRepositories, tree: string, name = 'refs/heads/evil'): string {
  const who = 'a <a@example.com> 1700000000 +0000'
  const id = put(two, 'commit', `tree ${tree}\nauthor ${who}\ncommitter ${who}\n\nevil\n`)
  mkdirSync(dirname(`${two.own}/${name}`), { recursive: true })
  writeFileSync(`${two.own}/${name}`, `${id}\n`)
  return id
}

/** A pack of 16 KB with a blob of more than a gigabyte: a delta that copies its base of 16 MB seventy times. Returns its id. */
export function putBomb(two: TwoRepositories): string {
  const [base, times] = [Buffer.alloc(0xffffff), 70]
  const id = createHash('sha1').update(`blob ${base.length}\0`).update(base).digest()
  const copy = Buffer.from([0xf0, 0xff, 0xff, 0xff])
  const delta = Buffer.concat([varint(base.length), varint(base.length * times), ...Array(times).fill(copy)])
  const pack = Buffer.concat([
    Buffer.from([...Buffer.from('PACK'), 0, 0, 0, 2, 0, 0, 0, 2]),
    header(3, base.length),
    deflateSync(base),
    header(7, delta.length),
    id,
    deflateSync(delta),
  ])
  const file = `${two.own}/objects/pack/pack-bomb.pack`
  writeFileSync(file, Buffer.concat([pack, createHash('sha1').update(pack).digest()]))
  two.inside('index-pack', file)
  const listed = two.inside('verify-pack', '-v', file)
  return /^([0-9a-f]+) blob .* 1 [0-9a-f]+$/m.exec(listed)?.[1] ?? ''
}

/** Seven bits a byte, lowest first. */
function varint(value: number): Buffer {
  const out: number[] = []
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    out.push((rest % 128) | (rest >= 128 ? 0x80 : 0))
    if (rest < 128) return Buffer.from(out)
  }
}

const header = (type: number, size: number): Buffer =>
  size < 16
    ? Buffer.from([(type << 4) | size])
    : Buffer.concat([Buffer.from([0x80 | (type << 4) | (size & 15)]), varint(size >> 4)])
