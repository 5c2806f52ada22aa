/** The compared ways from a client to the outside, and one run of the load generator over one of them. */
import type { Peer } from './peers.ts'
import { ALLOW, used } from './world.ts'

export interface Way {
  readonly name: string
  /** Words before the client. */
  readonly before: readonly string[]
  readonly proxyPort: number | undefined
  /** The process that carries the bytes. For pen it is the process that runs the client. */
  readonly carrier: number | 'parent' | undefined
}

export const direct: Way = { name: 'direct', before: [], proxyPort: undefined, carrier: undefined }

/** Through the real door: the client is not configured for a proxy. */
export const throughPen = (pen: string, allow = ALLOW): Way => ({
  name: 'pen',
  before: [pen, 'run', '--limit', 'files=16384', ...allow, '--'],
  proxyPort: undefined,
  carrier: 'parent',
})

export const throughPeer = ({ name, port, pid }: Peer): Way => ({
  name,
  before: [],
  proxyPort: port,
  carrier: pid,
})

export interface Said {
  readonly said: Readonly<Record<string, number>>
  readonly carrier: ReturnType<typeof used>
  /** CPU time of the carrier during this run. pen's includes its own start. */
  readonly cpu: number
}

export interface Place {
  readonly load: string
  /** What the load generator dials. */
  readonly host: string
  readonly project: string
}

/** Every line that the generator prints, with the carrier's state at that moment. */
export async function* runLoad(
  way: Way,
  { load, project }: Place,
  args: readonly (string | number)[],
): AsyncGenerator<Said> {
  const proxy = way.proxyPort === undefined ? [] : [String(way.proxyPort)]
  const argv = [...way.before, load, ...args.map(String), ...proxy]
  const before = typeof way.carrier === 'number' ? used(way.carrier).cpu : 0
  const child = Bun.spawn(argv, { cwd: project, stdio: ['ignore', 'pipe', 'pipe'] })
  const deadline = setTimeout(() => child.kill('SIGKILL'), 180_000)
  const carrier = way.carrier === 'parent' ? child.pid : (way.carrier ?? child.pid)
  let text = ''
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk)
    for (let end = text.indexOf('\n'); end >= 0; end = text.indexOf('\n')) {
      const state = used(carrier)
      yield {
        said: JSON.parse(text.slice(0, end)) as Said['said'],
        carrier: state,
        cpu: state.cpu - before,
      }
      text = text.slice(end + 1)
    }
  }
  clearTimeout(deadline)
  if ((await child.exited) !== 0)
    throw new Error(`${way.name}: ${(await new Response(child.stderr).text()).trim()}`)
}

/** The last line. Its CPU time counts from the line before it, if there is one. */
export async function runOnce(way: Way, place: Place, args: readonly (string | number)[]): Promise<Said> {
  let last: Said | undefined
  let before = 0
  for await (const said of runLoad(way, place, args)) {
    before = last?.cpu ?? 0
    last = said
  }
  if (last === undefined) throw new Error(`${way.name}: the load generator said nothing`)
  return { ...last, cpu: last.cpu - before }
}
