import { expect, test } from 'bun:test'
import { Allowance, Credit, WINDOW } from './window.ts'

test('a writer sends what it was granted, and not one byte more', () => {
  const credit = new Credit()
  credit.spend(WINDOW)
  expect(() => credit.spend(1)).toThrow('more was sent than there was room for')
  credit.grant(5)
  expect(credit.left).toBe(5)
})

test('no reader can grant more than was sent', () => {
  const credit = new Credit()
  expect(() => credit.grant(1)).toThrow('more room was granted than was used')
  credit.spend(10)
  expect(() => credit.grant(11)).toThrow('more room was granted than was used')
  expect(() => credit.grant(0)).toThrow('more room was granted than was used')
})

test('a reader refuses what it did not grant, and grants what it has used', () => {
  const allowance = new Allowance()
  allowance.receive(WINDOW)
  expect(() => allowance.receive(1)).toThrow('more came than there was room for')
  expect(allowance.use(1)).toBe(0)
  expect(allowance.use(WINDOW / 2)).toBe(WINDOW / 2 + 1)
  allowance.receive(WINDOW / 2 + 1)
  expect(() => allowance.receive(1)).toThrow('more came than there was room for')
})
