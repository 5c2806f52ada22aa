/**
 * How long a policy takes from bytes to verdicts: read, validate, parse, merge and compile a document of 1,000
 * rules. Nothing is read from disk and nothing leaves the process.
 *
 *   bun bench/policy.ts [--json]
 *
 * Target: under 5 ms.
 */
import { readJson } from '../src/config/json/json.ts'
import { compile } from '../src/policy/compile.ts'
import type { HostPath, PathWorld } from '../src/policy/files/path.ts'
import { mergeLayers } from '../src/policy/merge.ts'
import { decideConnection } from '../src/policy/network/decide-connection.ts'
import type { Host } from '../src/policy/network/host.ts'
import type { Port } from '../src/policy/network/port.ts'
import { parseLayer } from '../src/policy/parse.ts'
import type { Policy } from '../src/policy/policy.ts'
import { profileLayer } from '../src/policy/profile.ts'

const world: PathWorld = {
  workspace: '/home/user/project' as HostPath,
  home: '/home/user' as HostPath,
  state: '/home/user/.pen' as HostPath,
  locate: path => ({ real: path, kind: 'directory' }),
}

const names = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) => `host${from + i}.zone${i % 97}.example.com:443`)
const bytes = (document: object) => new TextEncoder().encode(JSON.stringify(document, undefined, 2))

/** A user who allows 1,000 names, and a project that asks for half of them and a hundred others. */
const live = bytes({
  profile: 'coding',
  files: { read: ['/usr/share/dict'], deny: ['secrets/'] },
  network: { http: names(0, 1000) },
})
const asked = bytes({ network: { http: [...names(0, 500), ...names(2000, 2100)] } })

function load(
  documents: readonly { readonly text: Uint8Array; readonly trust: 'user' | 'untrusted' }[],
): Policy {
  const layers = documents.map(({ text, trust }) =>
    parseLayer(readJson(text, 'config.json'), { name: trust, trust, world, isPublicSuffix: () => false }),
  )
  const merged = mergeLayers({
    base: profile => profileLayer(profile, world),
    workspace: world.workspace,
    trusted: layers.filter(layer => layer.trust === 'user'),
    untrusted: layers.filter(layer => layer.trust === 'untrusted'),
    allowUserExpansion: false,
  })
  return compile(merged.settings, world.workspace, new Map())
}

function measure(work: () => Policy, runs = 30): { first: number; median: number; rules: number } {
  let rules = 0
  const times = Array.from({ length: runs }, () => {
    const start = performance.now()
    rules = work().network.allow.length
    return performance.now() - start
  })
  return { first: times[0] ?? 0, median: times.toSorted((a, b) => a - b)[runs >> 1] ?? 0, rules }
}

const user = { text: live, trust: 'user' } as const
const results = {
  'one document of 1,000 rules': measure(() => load([user])),
  'the same, narrowed by a project that asks for 600': measure(() =>
    load([user, { text: asked, trust: 'untrusted' }]),
  ),
}
const isRight = decideConnection(
  load([user]).network.index,
  { name: 'host7.zone7.example.com' as Host },
  443 as Port,
)
if (!isRight.ok) throw new Error('the measured policy is not the intended one')

if (process.argv.includes('--json')) console.log(JSON.stringify(results))
else
  for (const [name, { first, median, rules }] of Object.entries(results))
    console.log(
      `${name}: ${median.toFixed(2)} ms (first, cold: ${first.toFixed(2)} ms), ${rules} rules in force`,
    )
