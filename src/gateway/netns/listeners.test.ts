import { expect } from 'bun:test'
import { join } from 'node:path'
import { onlyWhen } from '../../../test/skip.ts'
import { findTool } from '../../base/find-tool.ts'

const onLinux = onlyWhen(process.platform === 'linux')

type How = 'mapped' | readonly number[]

interface Attempt {
  readonly opened?: number
  readonly failed?: string
  /** Descriptors. */
  readonly left: number
}

/** Runs the attempts in a new namespace, in order. */
function attempts(...hows: readonly How[]): readonly Attempt[] {
  const script = `
import { readdirSync } from 'node:fs'
const { openListeners, openMapped } = await import(${JSON.stringify(join(import.meta.dir, 'listeners.ts'))})
const count = () => readdirSync('/proc/self/fd').length
const attempt = how => {
  const before = count()
  try {
    return { opened: (how === 'mapped' ? openMapped() : openListeners(how))?.length ?? 0, left: count() - before }
  } catch (error) {
    return { failed: error.message, left: count() - before }
  }
}
console.log(JSON.stringify(${JSON.stringify(hows)}.map(attempt)))`
  const unshare = findTool('unshare') ?? 'unshare'
  const argv = [unshare, '--user', '--map-root-user', '--net', '--', process.execPath, '-e', script]
  const { stdout, stderr } = Bun.spawnSync(argv, { env: {} })
  if (stdout.length === 0) throw new Error(stderr.toString())
  return JSON.parse(stdout.toString()) as Attempt[]
}

/** Without IPv6. */
const FEWEST = 6

onLinux('P17 listeners open all together or not at all, and a failure leaves none open', () => {
  const [opened] = attempts([80, 443])
  expect(opened?.opened).toBeGreaterThanOrEqual(FEWEST)
  expect(opened?.left).toBe(opened?.opened ?? 0)
  expect(attempts([80, 80])).toEqual([{ failed: 'bind port 80: EADDRINUSE', left: 0 }])
})

onLinux('P17 rules load into a namespace without rules of pen, and a second load is refused', () => {
  const [first, again] = attempts('mapped', 'mapped')
  expect(first?.opened).toBeGreaterThanOrEqual(FEWEST)
  expect(again).toEqual({ opened: 0, left: 0 })
})
