import { expect, test } from 'bun:test'
import { writeSync } from 'node:fs'
import { LastOutput } from './last-output.ts'

test('only the end of a long output is shown, without what controls a terminal', async () => {
  const output = new LastOutput()
  for (let i = 0; i < 100; i++) writeSync(output.writer, `${'x'.repeat(500)}\n`)
  writeSync(output.writer, '\u001b[2Jcleared\r\n\nlast\n')
  output.closeWriter()
  const shown = await output.lastLines(3)
  expect(shown).toEndWith(' / \\u001b[2Jcleared / last')
  expect(shown.length).toBeLessThan(300)
})

test('a line is seen when it is complete, and an end without it is no hang', async () => {
  const output = new LastOutput()
  const seen = output.saw('ready')
  writeSync(output.writer, 'rea')
  writeSync(output.writer, 'dy\n')
  await seen
  output.closeWriter()
  await output.saw('never')
  expect(await output.said('ready')).toBe(true)
})
