import { expect, test } from 'bun:test'
import { EventListeners } from './event-listeners.ts'

interface Events {
  denial: [what: string]
  error: [error: unknown]
}

const make = (): EventListeners<Events> => new EventListeners<Events>(['denial', 'error'])

test('a listener that throws does not affect the others, and its error is reported', async () => {
  const events = make()
  const seen: unknown[] = []
  events.add('error', (error: unknown) => void seen.push(error))
  events.add('denial', () => {
    throw new Error('at once')
  })
  events.add('denial', () => Promise.reject(new Error('later')))
  events.add('denial', (what: string) => void seen.push(what))
  events.emit('denial', 'a')
  events.emit('denial', 'b')
  await Bun.sleep(0)
  expect(seen.filter(one => typeof one === 'string')).toEqual(['a', 'b'])
  expect(seen.filter(one => one instanceof Error)).toHaveLength(4)
})

test('an unknown event and a listener that is not a function are refused', () => {
  const events = make()
  expect(() => events.add('denail' as 'denial', () => undefined)).toThrow('unknown event "denail"')
  expect(() => events.add('denial', 'x' as unknown as () => void)).toThrow('the listener of box.on()')
  const once = (): void => {
    throw new Error('removed')
  }
  events.add('denial', once)
  events.remove('denial', once)
  events.emit('denial', 'a')
})
