import { expect, test } from 'bun:test'
import { UndoStack } from './undo.ts'

const later = (fn: () => void): Promise<void> => new Promise(resolve => setTimeout(resolve, 1)).then(fn)

test('undos run newest first, synchronous and asynchronous alike', async () => {
  const ran: string[] = []
  const stack = new UndoStack()
  stack.push('mount', () => void ran.push('mount'))
  stack.push('process', () => later(() => void ran.push('process')))
  stack.push('socket', () => void ran.push('socket'))
  expect(await stack.unwind()).toEqual([])
  expect(ran).toEqual(['socket', 'process', 'mount'])
})

test('synchronous undos have run before unwind returns', () => {
  const ran: number[] = []
  const stack = new UndoStack()
  for (const n of [1, 2, 3]) stack.push(`${n}`, () => void ran.push(n))
  void stack.unwind()
  expect(ran).toEqual([3, 2, 1])
})

test('a failing undo is reported and the rest still run', async () => {
  const ran: string[] = []
  const stack = new UndoStack()
  stack.push('first', () => void ran.push('first'))
  stack.push('throws', () => {
    throw new Error('busy')
  })
  stack.push('rejects', () => Promise.reject(new Error('gone')))
  const failures = await stack.unwind()
  expect(failures.map(f => [f.label, String(f.error)])).toEqual([
    ['rejects', 'Error: gone'],
    ['throws', 'Error: busy'],
  ])
  expect(ran).toEqual(['first'])
})

test('unwinding twice, or twice at once, runs each undo once', async () => {
  let runs = 0
  const stack = new UndoStack()
  stack.push('slow', () => later(() => void runs++))
  await Promise.all([stack.unwind(), stack.unwind()])
  await stack.unwind()
  expect(runs).toBe(1)
})

test('an undo pushed while unwinding is run too', async () => {
  const ran: string[] = []
  const stack = new UndoStack()
  stack.push('old', () => later(() => void ran.push('old')))
  const unwinding = stack.unwind()
  stack.push('late', () => void ran.push('late'))
  await unwinding
  expect(ran).toEqual(['old', 'late'])
  expect(stack.size).toBe(0)
})

test('an undo that was taken off does not run, and its neighbours do', async () => {
  const ran: string[] = []
  const stack = new UndoStack()
  stack.push('kept', () => void ran.push('kept'))
  const takeOff = stack.push('handed over', () => void ran.push('handed over'))
  takeOff()
  takeOff()
  await stack.unwind()
  expect(ran).toEqual(['kept'])
})
