import { describe, expect, test } from 'bun:test'
import { LineState } from './host-terminal.ts'

/** Runs a script on a new terminal. Returns what a person would see of it and of the shell afterwards. */
async function seenOf(script: string, until: string): Promise<string> {
  let seen = ''
  await using terminal = new Bun.Terminal({
    cols: 80,
    rows: 24,
    data: (_terminal, bytes) => {
      seen += Buffer.from(bytes).toString()
    },
  })
  const { BUN_INSPECT: _, ...env } = process.env
  const child = Bun.spawn(['sh', '-c', `"$0" -e "$1"; echo code=$?; stty -a`, process.execPath, script], {
    terminal,
    env,
  })
  expect(await child.exited).toBe(0)
  for (let i = 0; i < 200 && !seen.includes(until); i++) await Bun.sleep(5)
  return seen
}

test('the user’s terminal is restored when pen crashes', async () => {
  const seen = await seenOf(
    `import { openPty } from '${import.meta.dir}/pty.ts'
process.on('uncaughtException', () => process.exit(125))
openPty([0, 1, 2])
process.stdout.write('\\x1b[?25l')
setTimeout(() => { throw new Error('a mistake') }, 50)`,
    'icanon',
  )
  expect(seen).toContain('code=125')
  expect(seen).toMatch(/ icanon /)
})

test('the last output is shown even when the runtime has not read it yet', async () => {
  const seen = await seenOf(
    `import { openPty } from '${import.meta.dir}/pty.ts'
import { writeSync } from 'node:fs'
const pty = openPty([0, 1, 2])
writeSync(pty.stdio[1], 'x'.repeat(3000) + ' last words')
await pty.close()
process.exit(0)`,
    'icanon',
  )
  expect(seen).toContain('x last words')
  expect(seen).toMatch(/ icanon /)
})

const after = (...texts: string[]) => {
  const line = new LineState()
  for (const text of texts) line.observe(text)
  const unrequested = line.ending()
  line.requestNewLine()
  return [unrequested, line.ending()]
}

describe('a message of pen after the command starts on a new line', () => {
  test.each<[string[]]>([[['text']], [['line\n', '$ ']], [['\u001b[1m⠙\u001b[0m']], [['a\r\n', '^C']]])(
    'after %j',
    texts => expect(after(...texts)).toEqual(['', '\r\n']),
  )
  test.each<[string[]]>([
    [[]],
    [['line\r\n']],
    [['⠙', '\r\u001b[K']],
    [['line\n', '\u001b[?25h', '\u001b=']],
  ])('without an extra line break after %j', texts => expect(after(...texts)).toEqual(['', '']))
})
