/**
 * Runs the suites of suites.ts and ends with one line, `N passed, N failed`. A suite that crashes, times out or
 * runs no test has failed. With PEN_REQUIRE_ALL=1 a skipped test has failed too.
 *
 * Tests that fail while two suites run in parallel run once more, alone: some claims are about time, and a busy
 * machine would break them. Both results are printed, and the summary names these tests.
 */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { spreadOut } from '../test/spread-out.ts'
import { countTests, type Failure, type Tally } from './count-tests.ts'
import { type Check, type Lane, SUITES, type Suite } from './suites.ts'

const root = join(import.meta.dir, '..')
const results = join(root, 'dist/test')
const requireAll = process.env['PEN_REQUIRE_ALL'] === '1'
/** More failures than this are not caused by load, so they are not repeated. */
const MOST_AGAIN = 8

const TEMPORARY = mkdtempSync(join(tmpdir(), 'pen-'))
chmodSync(TEMPORARY, 0o1777)
spreadOut(TEMPORARY)

/** Tests remove their own files. The rest stays where something is still mounted: it may not be the tests'. */
function removeTemporary(): void {
  const isMounted =
    process.platform === 'linux' && readFileSync('/proc/self/mounts', 'utf8').includes(` ${TEMPORARY}/`)
  if (!isMounted) rmSync(TEMPORARY, { recursive: true, force: true })
}

/** Bun's banner and totals. This runner prints its own. */
const NOISE = /^(bun test v.*|Ran \d+ tests? across .*|\s*\d+ (pass|fail|skip|expect\(\) calls))$/

/** Prefixes every line with its suite when two run in parallel. */
async function show(stream: ReadableStream<Uint8Array>, before: string): Promise<void> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line.trim() !== '' && !NOISE.test(line)) console.log(`${before}${line}`)
  }
  if (rest.trim() !== '') console.log(`${before}${rest}`)
}

async function execute(
  argv: readonly string[],
  seconds: number,
  before: string,
  more: Readonly<Record<string, string>> = {},
): Promise<{ code: number; late: boolean }> {
  const env = { ...process.env, TMPDIR: TEMPORARY, ...more }
  const child = Bun.spawn([...argv], { cwd: root, env, stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
  let late = false
  const timer = setTimeout(() => {
    late = true
    child.kill('SIGKILL')
  }, seconds * 1000)
  const shown = Promise.all([show(child.stdout, before), show(child.stderr, before)])
  const code = await child.exited
  clearTimeout(timer)
  // A process that a test left behind may hold the pipe open. Do not wait for it.
  await Promise.race([shown, Bun.sleep(500)])
  return { code, late }
}

async function runCheck(check: Check): Promise<Tally> {
  const { code } = await execute(check.argv, 300, '  ')
  return code === 0
    ? { passed: 1, skipped: 0, failures: [] }
    : { passed: 0, skipped: 0, failures: [{ text: `${check.argv.join(' ')} ended with ${code}` }] }
}

async function runSuite(suite: Suite): Promise<Tally> {
  // Engines and namespaces that a process made for its tests serve all of its files.
  const parallel = suite.files === undefined ? [] : [`--parallel=${suite.files}`, '--no-isolate']
  const { code, late, tally } = await bunTest(suite, [...parallel, suite.folder])
  const problems: string[] = []
  if (late) problems.push(`was ended after ${suite.wall} s`)
  else if (tally === undefined) problems.push(`ran no tests in ${suite.folder} (bun test ended with ${code})`)
  else if (tally.passed + tally.failures.length === 0 && tally.skipped === 0) problems.push('ran no tests')
  else if (code !== 0 && tally.failures.length === 0)
    problems.push(`bun test ended with ${code} though no test failed`)
  const { passed, skipped, failures } = tally ?? { passed: 0, skipped: 0, failures: [] }
  if (requireAll && skipped > 0) problems.push(`${skipped} skipped, and PEN_REQUIRE_ALL=1 allows none`)
  return {
    passed,
    skipped: requireAll ? 0 : skipped,
    failures: [...failures, ...problems.map(text => ({ text }))],
  }
}

/** Bun's name for a `beforeAll` that failed. No pattern finds it: the whole file runs again. */
const SETUP = '(unnamed)'

/** The same test alone, on any engine. */
async function passesAlone(suite: Suite, { file, name }: NonNullable<Failure['test']>): Promise<boolean> {
  const exactly = name === SETUP ? '' : `${name.replace(/[^\w ]/g, '\\$&')}$`
  const env = { ...suite.env, PEN_EVERY_ENGINE: '1' }
  const alone = { ...suite, name: `${suite.name}-alone`, env }
  const { late, tally } = await bunTest(alone, ['--test-name-pattern', exactly, `./${file}`])
  return !late && tally !== undefined && tally.passed > 0 && tally.failures.length === 0
}

async function bunTest(suite: Suite, what: readonly string[]) {
  const report = join(results, `${suite.name}.xml`)
  rmSync(report, { force: true })
  const ended = await execute(
    [
      process.execPath,
      'test',
      '--only-failures',
      `--timeout=${suite.testTimeout}`,
      '--reporter=junit',
      `--reporter-outfile=${report}`,
      ...what,
    ],
    suite.wall,
    suite.lane === undefined ? '  ' : `  ${suite.name}: `,
    suite.env,
  )
  return { ...ended, tally: readReport(report) }
}

function readReport(file: string): Tally | undefined {
  try {
    return countTests(readFileSync(file, 'utf8'))
  } catch {
    return undefined // no report: the process died before it wrote one
  }
}

const wanted = process.argv.slice(2)
const unknown = wanted.filter(name => !SUITES.some(suite => suite.name === name))
const isDaily = (suite: Check | Suite): boolean => suite.kind === 'check' || suite.onlyByName !== true
const chosen = SUITES.filter(suite => (wanted.length === 0 ? isDaily(suite) : wanted.includes(suite.name)))
mkdirSync(results, { recursive: true })

let passed = 0
let skipped = 0
const failures = unknown.map(name => `${name}: no such suite (${SUITES.map(suite => suite.name).join(', ')})`)
const beside: { readonly suite: Suite; readonly failure: Failure }[] = []

async function run(suite: Check | Suite): Promise<void> {
  console.log(`${suite.name} …`)
  const began = performance.now()
  const tally = suite.kind === 'check' ? await runCheck(suite) : await runSuite(suite)
  const seconds = ((performance.now() - began) / 1000).toFixed(1)
  const skips = tally.skipped > 0 ? `, ${tally.skipped} skipped` : ''
  console.log(`${suite.name}: ${tally.passed} passed, ${tally.failures.length} failed${skips} (${seconds} s)`)
  passed += tally.passed
  skipped += tally.skipped
  for (const failure of tally.failures)
    if (suite.kind === 'suite' && suite.lane !== undefined) beside.push({ suite, failure })
    else failures.push(`${suite.name}: ${failure.text}`)
}

async function runLane(lane: Lane | undefined): Promise<void> {
  for (const suite of chosen) if (suite.lane === lane) await run(suite)
}

await Promise.all([runLane('checks'), runLane('sources')])
await runLane(undefined)
await Promise.all([runLane('engines'), runLane('others')])

const second: string[] = []
for (const { suite, failure } of beside) {
  const { text, test } = failure
  const alone = test !== undefined && beside.length <= MOST_AGAIN && (await passesAlone(suite, test))
  ;(alone ? second : failures).push(`${suite.name}: ${text}`)
}
passed += second.length

const list = (lines: readonly string[]): string => lines.map(line => `  ${line}`).join('\n')
if (second.length > 0) console.log(`\nFailed beside others, and passed alone:\n${list(second)}\n`)
if (failures.length > 0) console.log(`\nFailed:\n${list(failures)}\n`)
console.log(`${passed} passed, ${failures.length} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`)
process.exitCode = failures.length > 0 ? 1 : 0
removeTemporary()
