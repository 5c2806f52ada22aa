/**
 * How fast rules compile and connections are judged. Bounded in time and count. Nothing leaves the process.
 *
 *   bun bench/decide.ts [--json]
 *
 * Targets: 1,000 rules compile in under 5 ms; 1 M verdicts a second on 10,000 rules, flat in the number of
 * exact rules.
 */
import type { Address } from '../src/policy/network/address.ts'
import { type Destination, decideConnection } from '../src/policy/network/decide-connection.ts'
import { parseAllowRule, parseDenyRule } from '../src/policy/network/endpoint.ts'
import type { Host } from '../src/policy/network/host.ts'
import { compileNetwork, type NetworkIndex } from '../src/policy/network/network.ts'
import type { Port } from '../src/policy/network/port.ts'
import type { Parsed, Sourced } from '../src/policy/source.ts'

const source = { layer: 'bench', place: undefined }
const notPublic = (): boolean => false
const PORT = 443 as Port

/** Nine exact names to one wildcard, an address for every tenth, a denial for every fiftieth. */
function texts(count: number): { allow: string[]; deny: string[] } {
  const allow: string[] = []
  const deny: string[] = []
  for (let i = 0; i < count; i++) {
    if (i % 50 === 49) deny.push(`denied${i}.zone${i % 97}.example.com`)
    else if (i % 10 === 8) allow.push(`203.${i >> 16}.${(i >> 8) & 255}.${i & 255}:443`)
    else if (i % 10 === 7) allow.push(`*.wild${i}.example.com:443`)
    else allow.push(`host${i}.zone${i % 97}.example.com:443`)
  }
  return { allow, deny }
}

function compile(count: number): NetworkIndex {
  const { allow, deny } = texts(count)
  const sourced = <T>(parsed: Parsed<T>): Sourced<T> => {
    if (!parsed.ok) throw new Error(parsed.why)
    return { rule: parsed.value, source }
  }
  return compileNetwork({
    mode: 'gateway',
    offline: false,
    allow: allow.map(text => sourced(parseAllowRule(text, notPublic))),
    deny: deny.map(text => sourced(parseDenyRule(text, notPublic))),
  })
}

/**
 * The kinds of questions a gateway asks, spread over all rules. Each is a new string, as if read from the
 * network.
 */
const QUESTIONS: Readonly<Record<string, (i: number, count: number) => Destination>> = {
  'allowed, exact name': (i, count) => {
    const n = Math.floor((i % count) / 10) * 10
    return { name: `host${n}.zone${n % 97}.example.com` as Host }
  },
  'allowed, wildcard': (i, count) => ({
    name: `a.b.wild${Math.floor((i % count) / 10) * 10 + 7}.example.com` as Host,
  }),
  'allowed, address': (i, count) => {
    const n = Math.floor((i % count) / 10) * 10 + 8
    return { address: `203.${n >> 16}.${(n >> 8) & 255}.${n & 255}` as Address }
  },
  'denied, by rule': (i, count) => {
    const n = Math.floor((i % count) / 50) * 50 + 49
    return { name: `denied${n}.zone${n % 97}.example.com` as Host }
  },
  'denied, unknown name': i => ({ name: `evil${i}.example.net` as Host }),
}

function verdictsPerSecond(index: NetworkIndex, questions: readonly Destination[]): number {
  const run = (): number => {
    let allowed = 0
    for (const to of questions) if (decideConnection(index, to, PORT).ok) allowed++
    return allowed
  }
  run()
  const end = performance.now() + 400
  const start = performance.now()
  let rounds = 0
  while (performance.now() < end) {
    run()
    rounds++
  }
  return (rounds * questions.length * 1000) / (performance.now() - start)
}

function medianMillis(work: () => void, runs = 15): { first: number; median: number } {
  const times = Array.from({ length: runs }, () => {
    const start = performance.now()
    work()
    return performance.now() - start
  })
  return { first: times[0] ?? 0, median: times.toSorted((a, b) => a - b)[runs >> 1] ?? 0 }
}

const compiling = medianMillis(() => void compile(1000))
const verdicts: Record<string, Record<string, number>> = {}
for (const count of [100, 1000, 10_000]) {
  const index = compile(count)
  const row: Record<string, number> = {}
  for (const [name, question] of Object.entries(QUESTIONS)) {
    const questions = Array.from({ length: 20_000 }, (_, i) => question(i, count))
    row[name] = Math.round(verdictsPerSecond(index, questions))
  }
  verdicts[count] = row
}

if (process.argv.includes('--json'))
  console.log(JSON.stringify({ compile1000RulesMs: compiling, verdictsPerSecond: verdicts }))
else {
  console.log(
    `compile 1,000 rules: ${compiling.median.toFixed(2)} ms (first, cold: ${compiling.first.toFixed(2)} ms)`,
  )
  for (const [count, row] of Object.entries(verdicts))
    for (const [name, rate] of Object.entries(row))
      console.log(`${count.padStart(6)} rules, ${name}: ${(rate / 1e6).toFixed(2)} M verdicts/s`)
}
