/** A terminal of the test with a program on it: what a person would type and see. */
import { dirname, join } from 'node:path'
import type { Box } from './box.ts'
import { PEN, SLOWER } from './launcher.ts'

interface Where {
  readonly cwd: string
  readonly env: Readonly<Record<string, string>>
}
interface Size {
  readonly cols: number
  readonly rows: number
}

export class ProgramScreen {
  readonly #terminal: Bun.Terminal
  readonly #child: Bun.Subprocess
  #seen = ''
  #from = 0

  /** A program that leads a session on the terminal. */
  constructor(argv: readonly string[], { cwd, env }: Where, size: Size = { cols: 91, rows: 33 }) {
    this.#terminal = new Bun.Terminal({
      ...size,
      data: (_terminal, bytes) => {
        this.#seen += Buffer.from(bytes).toString()
      },
    })
    this.#child = Bun.spawn(['setsid', '--ctty', '--wait', ...argv], {
      cwd,
      env: { ...env },
      terminal: this.#terminal,
    })
  }

  type(keys: string): void {
    this.#terminal.write(keys)
  }
  resize(cols: number, rows: number): void {
    this.#terminal.resize(cols, rows)
  }
  /** As when its window is closed. */
  close(): void {
    if (!this.#terminal.closed) this.#terminal.close()
  }
  [Symbol.dispose](): void {
    this.close()
  }
  get seen(): string {
    return this.#seen
  }

  /** Waits until this is on the screen, after what was waited for before. */
  async shows(wanted: string | RegExp, withinMs = 20_000): Promise<string> {
    const late = performance.now() + withinMs * SLOWER
    for (;;) {
      const fresh = this.#seen.slice(this.#from)
      const at = typeof wanted === 'string' ? fresh.indexOf(wanted) : (wanted.exec(fresh)?.index ?? -1)
      if (at >= 0) {
        const text = typeof wanted === 'string' ? wanted : (wanted.exec(fresh)?.[0] ?? '')
        this.#from += at + text.length
        return text
      }
      if (performance.now() > late) throw new Error(`not shown: ${wanted}\n${JSON.stringify(this.#seen)}`)
      await Bun.sleep(3)
    }
  }

  async ended(withinMs = 20_000): Promise<number> {
    const late = setTimeout(() => this.#child.kill('SIGKILL'), withinMs * SLOWER)
    const code = await this.#child.exited
    clearTimeout(late)
    // The last output may still be in transit.
    await Bun.sleep(20)
    return code
  }
}

/** A shell line on the terminal, in which `pen run` is a run of the box's user and backend. */
export class Screen extends ProgramScreen {
  constructor(box: Box, line: string, size?: Size) {
    // A program, not a function: in the background it is the job itself, and the shell waits for it.
    const { flags, who } = box.launcher
    const program = `#!/bin/sh\nverb=$1; shift; exec ${PEN} "$verb" ${flags.join(' ')} "$@"\n`
    const bin = dirname(box.file(join(box.root, 'bin/pen'), program, 0o755))
    const argv = [...who.become, '/bin/bash', '--norc', '-c', line]
    super(argv, { cwd: box.project, env: box.env({ PATH: `${bin}:/usr/local/bin:/usr/bin:/bin` }) }, size)
  }
}
