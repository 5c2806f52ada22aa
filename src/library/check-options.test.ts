import { expect, test } from 'bun:test'
import { checkOptions, type Shape } from './check-options.ts'
import { EXEC_SHAPE, type ExecOptions } from './exec-options.ts'
import { SandboxError } from './sandbox-error.ts'

const check = (options: unknown): ExecOptions =>
  checkOptions('box.exec()', options as ExecOptions, EXEC_SHAPE)

function refusal(options: unknown): SandboxError {
  try {
    check(options)
  } catch (error) {
    if (error instanceof SandboxError) return error
    throw error
  }
  throw new Error('it was taken')
}

test('a misspelt option is refused, with the one that was meant', () => {
  expect(refusal({ timout: 1 })).toMatchObject({
    code: 'USAGE',
    what: 'box.exec() has no option "timout"',
    hint: 'did you mean "timeout"?',
  })
  expect(refusal({ colour: 1 }).hint).toStartWith('one of: timeout, env')
  expect(refusal({ constructor: 1 }).what).toContain('"constructor"')
})

test('a value of another type is refused, with the type that it takes', () => {
  expect(refusal({ timeout: '5' })).toMatchObject({
    what: 'the option timeout of box.exec() is the text "5"',
    hint: 'it takes a number',
  })
  for (const wrong of [
    { env: [] },
    { cwd: 1 },
    { signal: {} },
    { stdin: 1 },
    { onOutput: {} },
    { timeout: null },
  ])
    expect(refusal(wrong).code).toBe('USAGE')
  for (const wrong of [null, 'text', [], 5]) expect(refusal(wrong).what).toContain('not an object')
})

test('options that were not given are not missed', () => {
  const options = { timeout: undefined, stdin: new Uint8Array(), signal: AbortSignal.abort() }
  expect(check(options)).toBe(options)
})

// @ts-expect-error every key of the options has to be in the shape
const _incomplete: Shape<{ a?: string; b?: string }> = { a: 'text' }
