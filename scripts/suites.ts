/**
 * What `npm test` runs, in order. A check is one command that passes or fails. A suite is one `bun test`
 * process.
 */

export interface Check {
  readonly kind: 'check'
  readonly name: string
  readonly argv: readonly string[]
  readonly lane: Lane
}

/**
 * One suite per lane runs at a time, beside those of the other lane. First come `checks` and `sources`, then the
 * suites without a lane, each alone, then `engines` and `others`. The lanes are balanced by the measured time of
 * their suites.
 */
export type Lane = 'checks' | 'sources' | 'engines' | 'others'

export interface Suite {
  readonly kind: 'suite'
  readonly name: string
  readonly folder: string
  /** Additional environment of its process. */
  readonly env?: Readonly<Record<string, string>>
  /** Timeout of one test, in milliseconds. */
  readonly testTimeout: number
  /** How many processes share its files. The default is one. */
  readonly files?: number
  /** Timeout of the whole suite, in seconds. A suite that exceeds it is ended and has failed. */
  readonly wall: number
  readonly lane?: Lane
  /** Not part of `npm test`. */
  readonly onlyByName?: true
}

const BUN = process.execPath

export const SUITES: readonly (Check | Suite)[] = [
  { kind: 'check', name: 'types', argv: ['node_modules/.bin/tsc', '--noEmit'], lane: 'checks' },
  {
    kind: 'check',
    name: 'lint',
    argv: ['node_modules/.bin/biome', 'ci', '--error-on-warnings', '--colors=off', '.'],
    lane: 'checks',
  },
  { kind: 'suite', name: 'fuzz', folder: './test/fuzz', testTimeout: 3_600_000, wall: 3_600, lane: 'checks' },
  { kind: 'check', name: 'build', argv: [BUN, 'scripts/build.ts'], lane: 'sources' },
  {
    kind: 'suite',
    name: 'unit',
    folder: './src',
    testTimeout: 15_000,
    files: 4,
    wall: 120,
    lane: 'sources',
  },
  { kind: 'suite', name: 'repo', folder: './test/repo', testTimeout: 60_000, wall: 180, lane: 'sources' },
  {
    kind: 'suite',
    name: 'golden',
    folder: './test/golden',
    testTimeout: 30_000,
    wall: 120,
    lane: 'sources',
  },
  // Its claims are about CPU time and memory, so no other suite runs beside it.
  { kind: 'suite', name: 'limits', folder: './test/limits', testTimeout: 15_000, files: 2, wall: 120 },
  // This suite looks at every process and mount of the machine.
  { kind: 'suite', name: 'leftovers', folder: './test/leftovers', testTimeout: 60_000, wall: 180 },
  {
    kind: 'suite',
    name: 'conformance',
    folder: './test/conformance',
    testTimeout: 60_000,
    files: 3,
    wall: 780,
    lane: 'others',
  },
  {
    kind: 'suite',
    name: 'repository',
    folder: './test/repository',
    testTimeout: 60_000,
    files: 3,
    wall: 300,
    lane: 'others',
  },
  {
    kind: 'suite',
    name: 'soft',
    folder: './test/soft',
    testTimeout: 60_000,
    files: 2,
    wall: 300,
    lane: 'others',
  },
  { kind: 'suite', name: 'docs', folder: './test/docs', testTimeout: 60_000, wall: 300, lane: 'engines' },
  {
    kind: 'suite',
    name: 'lifecycle',
    folder: './test/lifecycle',
    testTimeout: 60_000,
    files: 2,
    wall: 480,
    lane: 'others',
  },
  {
    kind: 'suite',
    name: 'library',
    folder: './test/library',
    testTimeout: 60_000,
    files: 2,
    wall: 600,
    lane: 'others',
  },
  {
    kind: 'suite',
    name: 'agents',
    folder: './test/agents',
    testTimeout: 60_000,
    files: 2,
    wall: 240,
    lane: 'others',
  },
  {
    kind: 'suite',
    name: 'containers',
    folder: './test/containers',
    testTimeout: 60_000,
    files: 2,
    wall: 600,
    lane: 'engines',
  },
  {
    kind: 'suite',
    name: 'conformance-containers',
    folder: './test/conformance',
    env: { PEN_CONFORMANCE: 'containers' },
    testTimeout: 60_000,
    files: 3,
    wall: 600,
    lane: 'engines',
  },
  // Every claim in a machine of its own takes an hour: only `npm run test:engines`.
  {
    kind: 'suite',
    name: 'conformance-vm',
    folder: './test/conformance',
    env: { PEN_CONFORMANCE: 'vm' },
    testTimeout: 300_000,
    wall: 14_400,
    onlyByName: true,
  },
  // Builds four programs twice, and installs them on an empty Debian.
  {
    kind: 'suite',
    name: 'release',
    folder: './test/release',
    testTimeout: 300_000,
    wall: 1_800,
    onlyByName: true,
  },
  // Its machines boot without a snapshot, one for each claim.
  {
    kind: 'suite',
    name: 'machines',
    folder: './test/machines',
    testTimeout: 120_000,
    wall: 600,
    onlyByName: true,
  },
  // Its machines take both processors while they boot.
  { kind: 'suite', name: 'vm', folder: './test/vm', testTimeout: 120_000, wall: 480, lane: 'engines' },
  {
    kind: 'suite',
    name: 'images',
    folder: './test/images',
    testTimeout: 60_000,
    files: 3,
    wall: 420,
    lane: 'engines',
  },
  {
    kind: 'suite',
    name: 'attack',
    folder: './test/attack',
    testTimeout: 60_000,
    files: 2,
    wall: 300,
    lane: 'others',
  },
]
