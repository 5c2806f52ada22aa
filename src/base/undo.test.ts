import { expect, spyOn, test } from 'bun:test'
import { PenError } from './error.ts'
import { type CleanupFailure, onCleanupFailure, UndoStack } from './undo.ts'

const later = (fn: () => void): Promise<void> => new Promise(resolve => setTimeout(resolve, 1)).then(fn)

test('undos run newest first, synchronous and asynchronous alike', async () => {
  const ran: string[] = []
  const stack = new UndoStack()
  stack.push('mount', () => void ran.push('mount'))
  stack.push('process', () => later(() => void ran.push('process')))
  stack.push('socket', () => void ran.push('socket'))
  await stack.unwind()
  expect(ran).toEqual(['socket', 'process', 'mount'])
})

test('synchronous undos have run before unwind returns', () => {
  const ran: number[] = []
  const stack = new UndoStack()
  for (const n of [1, 2, 3]) stack.push(`${n}`, () => void ran.push(n))
  void stack.unwind()
  expect(ran).toEqual([3, 2, 1])
})

test('a failing undo is reported on stderr and to listeners, and the rest still run', async () => {
  const ran: string[] = []
  const reported: CleanupFailure[] = []
  const stopReporting = onCleanupFailure(failure => void reported.push(failure))
  const stopThrowing = onCleanupFailure(() => {
    throw new Error('the disk is full')
  })
  const stderr = spyOn(process.stderr, 'write').mockReturnValue(true)
  try {
    const stack = new UndoStack()
    stack.push('first', () => void ran.push('first'))
    stack.push('the cgroup', () => {
      throw new PenError('LIMIT', { what: 'busy', at: '/sys/\u001b[2J', hint: 'end 12' })
    })
    stack.push('the container', () => Promise.reject(new Error('gone')))
    await stack.unwind()
    expect(stderr.mock.calls.map(([text]) => text)).toEqual([
      'pen: could not clean up the container: gone\n  fix: pen gc\n',
      'pen: could not clean up the cgroup: busy (/sys/\\u001b[2J)\n  fix: end 12\n',
    ])
  } finally {
    stderr.mockRestore()
    stopReporting()
    stopThrowing()
  }
  expect(reported).toEqual([
    { what: 'the container', why: 'gone', fix: 'pen gc' },
    { what: 'the cgroup', why: 'busy (/sys/\u001b[2J)', fix: 'end 12' },
  ])
  expect(ran).toEqual(['first'])
})

test('an undo that is pushed to run last runs after those pushed before it', async () => {
  const ran: string[] = []
  const stack = new UndoStack()
  stack.push('cgroup', () => void ran.push('cgroup'))
  stack.pushToRunLast('audit', () => void ran.push('audit'))
  stack.push('door', () => void ran.push('door'))
  await stack.unwind()
  expect(ran).toEqual(['door', 'cgroup', 'audit'])
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
  await stack.unwind()
  expect(ran).toEqual(['old', 'late'])
})

test('an undo that was removed does not run, and its neighbours do', async () => {
  const ran: string[] = []
  const stack = new UndoStack()
  stack.push('kept', () => void ran.push('kept'))
  const takeOff = stack.push('handed over', () => void ran.push('handed over'))
  takeOff()
  takeOff()
  await stack.unwind()
  expect(ran).toEqual(['kept'])
})
