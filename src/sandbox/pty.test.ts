import { expect, test } from 'bun:test'

test('the user’s terminal is given back also when pen fails', async () => {
  const script = `import { openPty } from '${import.meta.dir}/pty.ts'
process.on('uncaughtException', () => process.exit(125))
openPty()
process.stdout.write('\\x1b[?25l')
setTimeout(() => { throw new Error('a mistake') }, 50)`
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
  for (let i = 0; i < 100 && !seen.includes('icanon'); i++) await Bun.sleep(5)
  expect(seen).toContain('code=125')
  expect(seen).toMatch(/ icanon /)
})
