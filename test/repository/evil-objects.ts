/** Objects and refs that no git command would write, for a sandbox's own repository. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
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
