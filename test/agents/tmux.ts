/** A terminal emulator for tests: its screen as text, with every escape sequence applied. */
import { spawnSync } from 'node:child_process'

export class Tmux {
  readonly #socket = `pen-test-${process.pid}-${crypto.randomUUID().slice(0, 8)}`

  /** The terminal stays after its command ends. */
  constructor(argv: readonly string[], cwd: string, env: Readonly<Record<string, string>>) {
    const size = ['-x', '110', '-y', '40']
    const line = `${argv.map(quoted).join(' ')}; sleep 60`
    this.#tmux(['-f', '/dev/null', 'new-session', '-d', ...size, '-c', cwd, line], env)
  }

  get screen(): string {
    return this.#tmux(['capture-pane', '-p'])
  }

  /** Polls ten times a second: the test's servers run in this process too. */
  async shows(wanted: string): Promise<string> {
    for (let tries = 0; tries < 200; tries++, await Bun.sleep(100)) {
      const now = this.screen
      if (now.includes(wanted)) return now
    }
    throw new Error(`${wanted} did not appear:\n${this.screen}`)
  }

  /** Whether the bell was rung: a terminal emulator marks the window. */
  get isRung(): boolean {
    return this.#tmux(['display-message', '-p', '#{window_bell_flag}']).trim() === '1'
  }

  type(...keys: readonly string[]): void {
    this.#tmux(['send-keys', ...keys])
  }

  close(): void {
    this.#tmux(['kill-server'])
  }

  #tmux(words: readonly string[], env?: Readonly<Record<string, string>>): string {
    const { stdout, status, stderr } = spawnSync('tmux', ['-L', this.#socket, ...words], {
      encoding: 'utf8',
      ...(env && { env: { ...env, TERM: 'xterm-256color' } }),
    })
    if (status !== 0 && words[0] !== 'kill-server') throw new Error(`tmux ${words.join(' ')}: ${stderr}`)
    return stdout
  }
}

const quoted = (word: string): string => `'${word.replaceAll("'", `'\\''`)}'`
