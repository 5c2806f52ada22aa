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
  throw new Error('the options were accepted')
}

test('a misspelt option is refused, with a suggestion', () => {
  expect(refusal({ timout: 1 })).toMatchObject({
    code: 'USAGE',
    what: 'box.exec() has no option "timout"',
    hint: 'did you mean "timeout"?',
  })
  expect(refusal({ colour: 1 }).hint).toStartWith('one of: timeout, env')
  expect(refusal({ constructor: 1 }).what).toContain('"constructor"')
})

test('a value of the wrong type is refused, with the expected type', () => {
  expect(refusal({ timeout: '5' })).toMatchObject({
    what: 'the option timeout of box.exec() is the string "5"',
    hint: 'expected a number',
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

test('an option that is undefined counts as absent', () => {
  const options = { timeout: undefined, stdin: new Uint8Array(), signal: AbortSignal.abort() }
  expect(check(options)).toBe(options)
})

// @ts-expect-error the shape needs every key of the options
const _incomplete: Shape<{ a?: string; b?: string }> = { a: 'text' }
