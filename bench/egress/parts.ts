/**
 * What is measured of each way. Rounds alternate between the ways, so that a busy moment of the machine affects
 * all of them.
 */
import { type Place, runLoad, runOnce, type Said, type Way } from './ways.ts'
import { median, used } from './world.ts'

export interface Figures {
  /** Over this way's own rounds. */
  readonly median: number
  readonly best: number
  /** Relative to the direct way of the same round: the median. */
  readonly ratio: number
  /** Seconds of the carrier's CPU time per unit: a GB, or 1,000 connections. */
  readonly cpu: number
}

export type Table = ReadonlyMap<string, Figures | string>

/** `rate` turns one run into one figure, larger is better. `units` is what the CPU time is divided by. */
async function compare(
  ways: readonly Way[],
  place: Place,
  rounds: number,
  args: readonly (string | number)[],
  rate: (said: Said['said']) => number,
  units: (said: Said['said']) => number,
): Promise<Table> {
  const runs = new Map(ways.map(way => [way, [] as { rate: number; ratio: number; cpu: number }[]]))
  const table = new Map<string, Figures | string>()
  for (let round = 0; round < rounds; round++) {
    let base = Number.NaN
    for (const way of ways) {
      if (table.has(way.name)) continue
      try {
        const { said, cpu } = await runOnce(way, place, args)
        const got = rate(said)
        if (Number.isNaN(base)) base = got
        runs.get(way)?.push({ rate: got, ratio: got / base, cpu: cpu / units(said) })
      } catch (error) {
        table.set(way.name, error instanceof Error ? error.message : String(error))
      }
    }
  }
  for (const [way, got] of runs)
    if (!table.has(way.name))
      table.set(way.name, {
        median: median(got.map(run => run.rate)),
        best: Math.max(...got.map(run => run.rate)),
        ratio: median(got.map(run => run.ratio)),
        cpu: median(got.map(run => run.cpu)),
      })
  return table
}

const field = (said: Said['said'], name: string): number => said[name] ?? Number.NaN

/** Gbit/s. */
export const throughput = (
  ways: readonly Way[],
  place: Place,
  rounds: number,
  mode: 'get' | 'put',
  seconds = 0.7,
) =>
  compare(
    ways,
    place,
    rounds,
    [mode, place.host, seconds, 1],
    said => (field(said, 'bytes') * 8) / 1e9 / field(said, 'seconds'),
    said => field(said, 'bytes') / 1e9,
  )

/** New connections a second, by this many clients at once. */
export const connections = (ways: readonly Way[], place: Place, rounds: number, clients: number) =>
  compare(
    ways,
    place,
    rounds,
    ['connections', place.host, 2000, clients],
    said => (field(said, 'count') - field(said, 'failed')) / field(said, 'seconds'),
    said => field(said, 'count') / 1000,
  )

export interface Latency {
  /** Microseconds. The minimum of all rounds: noise only adds. */
  readonly p50: number
  readonly p99: number
}

export async function latency(
  ways: readonly Way[],
  place: Place,
  rounds: number,
): Promise<ReadonlyMap<string, Latency>> {
  const table = new Map<string, Latency>()
  for (let round = 0; round < rounds; round++)
    for (const way of ways) {
      const { said } = await runOnce(way, place, ['trips', place.host, 5000]).catch(() => ({ said: {} }))
      const best = table.get(way.name)
      table.set(way.name, {
        p50: Math.min(field(said, 'p50'), best?.p50 ?? Number.POSITIVE_INFINITY),
        p99: Math.min(field(said, 'p99'), best?.p99 ?? Number.POSITIVE_INFINITY),
      })
    }
  return table
}

export interface Held {
  readonly opened: number
  readonly held: number
  readonly memory: number
}

export async function holdOpen(way: Way, place: Place, count: number): Promise<Held> {
  let opened = 0
  let held = 0
  let memory = 0
  for await (const { said, carrier } of runLoad(way, place, ['hold', place.host, count, 3])) {
    opened = said['opened'] ?? opened
    held = said['held'] ?? held
    memory = Math.max(memory, carrier.memory)
  }
  return { opened, held, memory }
}

export interface Soak {
  readonly failed: number
  readonly began: { readonly memory: number; readonly files: number }
  readonly ended: { readonly memory: number; readonly files: number }
}

/** The first tenth warms up. The rest is compared with the state after it, both after a pause. */
export async function soak(pen: Way, { load, host, project }: Place, count: number): Promise<Soak> {
  const [first, rest] = [count / 10, (count / 10) * 9]
  const script = `${load} connections ${host} ${first / 2} 4; sleep 4; ${load} connections ${host} ${rest / 2} 4; sleep 4`
  const child = Bun.spawn([...pen.before, 'sh', '-c', `${script}; exec sleep 1`], {
    cwd: project,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const states: Promise<ReturnType<typeof used>>[] = []
  let failed = 0
  for await (const chunk of child.stdout)
    for (const line of new TextDecoder().decode(chunk).trim().split('\n')) {
      const said = JSON.parse(line) as { failed?: number }
      if (said.failed === undefined) continue
      failed += said.failed
      states.push(Bun.sleep(3500).then(() => used(child.pid)))
    }
  const [began, ended] = await Promise.all(states)
  if (began === undefined || ended === undefined) throw new Error('the soak did not finish')
  return { failed, began, ended }
}
