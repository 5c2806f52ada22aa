/** The figures for a person to read, each with its target. */
import type { Figures, Held, Latency, Soak, Table } from './parts.ts'
import type { Absent } from './peers.ts'
import { ONE_SECRET } from './startup.ts'
import { median } from './world.ts'

export interface Report {
  readonly load: readonly number[]
  readonly absent: readonly Absent[]
  readonly start: ReadonlyMap<string, readonly number[]> | undefined
  readonly get: Table | undefined
  readonly put: Table | undefined
  readonly one: Table | undefined
  readonly eight: Table | undefined
  readonly latency: ReadonlyMap<string, Latency> | undefined
  readonly opened: Opened | undefined
  readonly held1000: Held | undefined
  readonly held5000: Held | undefined
  readonly soak: Soak | undefined
  readonly dns: number | undefined
}

/** HTTPS requests through proxies that open TLS. */
export interface Opened {
  readonly get: Table
  readonly put: Table
  readonly new: Table
  readonly latency: ReadonlyMap<string, Latency>
}

const show = (value: number): string =>
  value >= 100 ? Math.round(value).toLocaleString('en') : value.toPrecision(3)
const say = (line: string): void => void process.stdout.write(`${line}\n`)
const target = (text: string, isMet: boolean): void => say(`  ${isMet ? 'met   ' : 'MISSED'} ${text}`)

export function printReport(report: Report, json: boolean): void {
  if (json) {
    say(
      JSON.stringify(report, (_, value: unknown) =>
        value instanceof Map ? Object.fromEntries(value) : value,
      ),
    )
    return
  }
  say(`load of the machine before: ${report.load.map(show).join(' ')}`)
  for (const { name, why } of report.absent) say(`${name}: not measured: ${why}`)
  if (report.start) printStart(report.start)
  printTable('download, Gbit/s (processor: s per GB)', report.get, { ratio: 0.5 })
  printTable('upload, Gbit/s (processor: s per GB)', report.put, {})
  printTable('new connections a second, one client (processor: s per 1,000)', report.one, { ahead: true })
  printTable('new connections a second, eight clients', report.eight, { ahead: true })
  if (report.latency) printLatency(report.latency)
  if (report.opened) printOpened(report.opened)
  for (const [count, held] of [
    [1000, report.held1000],
    [5000, report.held5000],
  ] as const)
    if (held !== undefined) {
      say(
        `${count} tunnels at once: ${held.opened} opened, ${held.held} held, ${show(held.memory)} MB resident`,
      )
      if (count === 1000) target('at most 80 MB', held.held === count && held.memory <= 80)
      else target('all held', held.held === count)
    }
  if (report.soak) printSoak(report.soak)
  if (report.dns !== undefined) {
    say(`DNS: ${show(report.dns)} answers a second`)
    target('50,000', report.dns >= 50_000)
  }
}

function printStart(times: ReadonlyMap<string, readonly number[]>): void {
  say('start and end of `true`, ms: least, median')
  for (const [name, each] of times)
    say(`  ${name.padEnd(24)} ${show(Math.min(...each))} ${show(median(each))}`)
  const of = (name: string): number => median(times.get(name) ?? [Number.NaN])
  // Of neighbours, because a busy moment lasts longer than one run.
  const plain = times.get('pen') ?? []
  const secret = median((times.get(ONE_SECRET) ?? []).map((ms, i) => ms - (plain[i] ?? Number.NaN)))
  target(`one secret: at most 5 ms more: ${show(secret)}`, secret <= 5)
  target(`at most 7 × bwrap: ${show(of('pen') / of('bwrap'))} ×`, of('pen') <= 7 * of('bwrap'))
  if (times.has('sandbox-runtime'))
    target(
      `at most 1/8 of sandbox-runtime: 1/${show(of('sandbox-runtime') / of('pen'))}`,
      of('pen') <= of('sandbox-runtime') / 8,
    )
}

function printTable(
  title: string,
  table: Table | undefined,
  goal: { ratio?: number; ahead?: boolean },
): void {
  if (table === undefined) return
  say(`${title}: median, best, × direct, processor`)
  for (const [name, its] of table)
    say(
      typeof its === 'string'
        ? `  ${name.padEnd(24)} not measured: ${its}`
        : `  ${name.padEnd(24)} ${[its.median, its.best, its.ratio, its.cpu].map(show).join('  ')}`,
    )
  const pen = table.get('pen')
  if (typeof pen !== 'object') {
    target('pen was measured', false)
    return
  }
  if (goal.ratio !== undefined)
    target(`at least ${goal.ratio} × direct: ${show(pen.ratio)}`, pen.ratio >= goal.ratio)
  const peers = [...table].filter(
    (row): row is [string, Figures] => typeof row[1] === 'object' && row[0] !== 'pen' && row[0] !== 'direct',
  )
  for (const [name, its] of peers) {
    const ahead = `ahead of ${name}: ${show(pen.median / its.median)} ×`
    // Not a real setup: it shows how fast a proxy is that neither judges nor records.
    if (name.endsWith('(bare)')) say(`  beside ${ahead}`)
    else target(ahead, pen.median > its.median)
  }
}

function printLatency(table: ReadonlyMap<string, Latency>): void {
  say('one byte there and back, µs: p50, p99')
  for (const [name, { p50, p99 }] of table) say(`  ${name.padEnd(24)} ${show(p50)} ${show(p99)}`)
  const pen = table.get('pen')
  const direct = table.get('direct')
  if (pen === undefined || direct === undefined) return
  target(`p50 at most 300 µs more: ${show(pen.p50 - direct.p50)}`, pen.p50 - direct.p50 <= 300)
  target(`p99 at most 2,000 µs more: ${show(pen.p99 - direct.p99)}`, pen.p99 - direct.p99 <= 2000)
}

function printOpened({ get, put, new: fresh, latency }: Opened): void {
  printTable('opened: download, Gbit/s (processor: s per GB)', get, { ahead: true })
  printTable('opened: upload, Gbit/s (processor: s per GB)', put, { ahead: true })
  printTable('opened: new connections a second, one client (processor: s per 1,000)', fresh, { ahead: true })
  say('opened: a request on an open connection, µs: p50, p99')
  for (const [name, { p50, p99 }] of latency) say(`  ${name.padEnd(24)} ${show(p50)} ${show(p99)}`)
  const [pen, squid] = [latency.get('pen')?.p50, latency.get('squid, ssl-bump')?.p50]
  if (pen !== undefined && squid !== undefined)
    target(`no slower than squid: ${show(pen / squid)} ×`, pen <= squid)
}

function printSoak({ failed, began, ended }: Soak): void {
  say(
    `100,000 connections: ${failed} failed; descriptors ${began.files} → ${ended.files}, memory ${show(began.memory)} → ${show(ended.memory)} MB`,
  )
  target('descriptors as they began', ended.files <= began.files)
  target('memory as it began (within 10 %)', ended.memory <= began.memory * 1.1)
}
