/** What accepts put into the project, so that the next one does not take it for an edit of the user's. */
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import type { Entry } from './entry.ts'

type Mark = Pick<Entry, 'ino' | 'ctimeNs'>

export class Accepted {
  readonly #file: string
  readonly #known = new Map<string, Mark>()
  #lines = ''

  constructor(layer: string) {
    this.#file = `${layer}/accepted`
    if (!existsSync(this.#file)) return
    // A killed accept may have left half a line.
    for (const line of readFileSync(this.#file, 'latin1').split('\n').slice(0, -1)) {
      const [, ino, ctimeNs, path] = /^(\d+) (\d+) (.+)$/.exec(line) ?? []
      if (ino !== undefined && ctimeNs !== undefined && path !== undefined)
        this.#known.set(JSON.parse(path) as string, { ino: BigInt(ino), ctimeNs: BigInt(ctimeNs) })
    }
  }

  get isEmpty(): boolean {
    return this.#known.size === 0
  }

  has(path: string, { ino, ctimeNs }: Mark): boolean {
    const known = this.#known.get(path)
    return known?.ino === ino && known.ctimeNs === ctimeNs
  }

  add(path: string, { ino, ctimeNs }: Mark): void {
    this.#known.set(path, { ino, ctimeNs })
    this.#lines += `${ino} ${ctimeNs} ${JSON.stringify(path)}\n`
  }

  flush(): void {
    if (this.#lines !== '') appendFileSync(this.#file, this.#lines, { encoding: 'latin1', mode: 0o600 })
    this.#lines = ''
  }
}
