import { startProgram } from '../../base/start-program.ts'
import { isTerminal } from '../../terminal/termios.ts'
import type { Terminal } from './terminal.ts'

/** Shows long text in the user's pager on a terminal, and prints it elsewhere. The text is escaped. */
export async function page(
  lines: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  terminal: Terminal,
): Promise<void> {
  const text = `${lines.join('\n')}\n`
  const pager = env['PEN_PAGER'] ?? env['PAGER'] ?? 'less'
  if (pager === '' || pager === 'cat' || !isTerminal(1)) {
    terminal.print(text)
    return
  }
  // F: short text needs no key. R: colours. X: the text stays on the screen.
  const child = startProgram(['/bin/sh', '-c', pager], {
    env: { LESS: 'FRX', ...env, LESSSECURE: '1' },
    stdin: Buffer.from(text),
    stdout: 'inherit',
    stderr: 'ignore',
  })
  // 127: there is no such program.
  if ((await child.exited) === 127) terminal.print(text)
}
