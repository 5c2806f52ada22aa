import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WatchRecord } from './watch-record.ts'
import { whileAlone } from './while-alone.ts'

let state = ''
beforeEach(() => {
  state = mkdtempSync(join(tmpdir(), 'pen-alone-'))
})
afterEach(() => rmSync(state, { recursive: true, force: true }))

const work = async (): Promise<string> => 'done'

test('work is not done while another sandbox of the project runs, and is done at its end', async () => {
  const own = await WatchRecord.open(state, 'own')
  expect(await whileAlone(state, ['own'], work)).toBe('done')
  const other = await WatchRecord.open(state, 'other')
  expect(await whileAlone(state, ['own'], work)).toBeUndefined()
  other.finish(true)
  expect(await whileAlone(state, ['own'], work)).toBe('done')
  own.finish(true)
})

test('the record of a run that was killed does not count, and stays', async () => {
  const killed = await WatchRecord.open(state, 'killed')
  killed.finish(false)
  expect(await whileAlone(state, [], work)).toBe('done')
  expect(readdirSync(`${state}/watching`)).toEqual(['killed'])
})

test('no sandbox starts meanwhile, and one starts afterwards', async () => {
  const start = (): Promise<WatchRecord> => WatchRecord.open(state, 'new')
  await whileAlone(state, [], async () => {
    await expect(start()).rejects.toThrow('another pen makes the repository')
    expect(await whileAlone(state, [], work)).toBeUndefined()
  })
  expect(readdirSync(`${state}/watching`)).toEqual([])
  // As a killed pen leaves it.
  writeFileSync(`${state}/adopting.lock`, '')
  ;(await start()).finish(true)
})
