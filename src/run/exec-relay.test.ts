import { expect, test } from 'bun:test'
import type { ExecEnding, Execution } from '../backend/backend.ts'
import { CHANNEL } from '../control/messages.ts'
import { encodeOrder, type Report, ReportReader } from '../protocol/exec-messages.ts'
import { ExecRelay } from './exec-relay.ts'

/** What starts commands inside, in hostile hands: it ends them when it likes. */
function relayTo(answersKill: boolean, isCopied: () => boolean = () => false) {
  const ended = Promise.withResolvers<ExecEnding>()
  const done = Promise.withResolvers<void>()
  const heard: Report[] = []
  const reports = new ReportReader()
  let endings = 0
  const nothing = (): void => undefined
  const execution: Execution = {
    ended: ended.promise,
    write: async () => undefined,
    endInput: nothing,
    resize: nothing,
    signal: nothing,
    kill: () => {
      if (answersKill) ended.resolve({ kind: 'signal', signal: 9 })
    },
  }
  const relay = new ExecRelay({
    exec: () => execution,
    audit: { record: nothing },
    number: 1,
    timeoutMs: 1,
    killed: nothing,
    unheard: () => {
      endings++
      ended.resolve({ kind: 'lost' })
    },
    unheardMs: 50,
    isCopied,
    send: bytes => void heard.push(...reports.push(bytes)),
    done: () => done.resolve(),
  })
  const order = { argv: ['x'], cwd: '/', env: [], terminal: undefined, joined: false }
  relay.push(encodeOrder({ kind: 'exec', channel: CHANNEL, order }))
  return { done: done.promise, heard, endings: () => endings }
}

test('P14 a command that is not ended when its time is over ends with its sandbox, and its client hears which it was', async () => {
  const deaf = relayTo(false)
  await deaf.done
  expect(deaf.endings()).toBe(1)
  expect(deaf.heard.at(-1)).toMatchObject({ kind: 'exit', how: 'exit', value: 124 })
})

test('P14 while the sandbox is paused for a copy, its exec daemon gets the time again', async () => {
  const copied = [true, true, false]
  const deaf = relayTo(false, () => copied.shift() === true)
  await deaf.done
  expect([deaf.endings(), copied]).toEqual([1, []])
})

test('P14 one that is ended leaves the sandbox as it was', async () => {
  const obedient = relayTo(true)
  await obedient.done
  await Bun.sleep(80)
  expect(obedient.endings()).toBe(0)
  expect(obedient.heard.at(-1)).toMatchObject({ kind: 'exit', how: 'exit', value: 124 })
})
