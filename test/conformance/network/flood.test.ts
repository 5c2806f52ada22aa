/** What a sandbox can do to its gateway: a lot of invalid input, slow and fast. Others are still served. */
import { expect } from 'bun:test'
import { copyFileSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { mutate } from '../../fuzz/mutate.ts'
import { prng } from '../../fuzz/prng.ts'
import { clientHello } from '../../gateway/hello.ts'
import { Stopwatch } from '../../stopwatch.ts'
import { until } from '../../until.ts'
import { runSteps } from './steps.ts'
import { supervisorOf } from './supervisor.ts'
import { forEachKind } from './world.ts'
import { EVIL, UP } from './zones.ts'

const MUTANTS = 20_000
const HEADS = [
  'GET / HTTP/1.1\r\nHost: allowed.test\r\n\r\n',
  'GET http://allowed.test/x HTTP/1.1\r\nHost: allowed.test:80\r\nConnection: close, X\r\nX: y\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: allowed.test\r\nContent-Length: 5\r\n\r\nhello',
  'POST / HTTP/1.1\r\nHost: allowed.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  'GET / HTTP/1.1\r\nHost: allowed.test\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
  'CONNECT allowed.test:443 HTTP/1.1\r\nHost: allowed.test:443\r\n\r\n',
  'OPTIONS * HTTP/1.0\r\n\r\n',
].map(text => Buffer.from(text))
const WORDS = [
  '\r\n',
  '\n',
  '\0',
  ' ',
  'Host: evil.test\r\n',
  'Content-Length: 6\r\n',
  'evil.test',
  '@',
  '[::1]',
  '%00',
  'HTTP/1.1',
]
const HELLOS = [
  clientHello(),
  clientHello({ names: ['evil.test'] }),
  clientHello({ perRecord: 7 }),
  clientHello({ names: [] }),
]
const QUERIES = ['123401000001000000000000', '123401200001000000000001'].map(head =>
  Buffer.from(`${head}07616c6c6f77656404746573740000010001`, 'hex'),
)
const TARGETS = [
  ['h', HEADS],
  ['p', HEADS],
  ['t', HELLOS],
  ['q', QUERIES],
  ['Q', QUERIES],
] as const satisfies readonly (readonly [string, readonly Uint8Array[]])[]

function mutants(seed: number): Buffer {
  const words = WORDS.map(text => Buffer.from(text))
  const parts: Uint8Array[] = []
  for (let n = 0; n < MUTANTS; n++) {
    const random = prng(seed, n)
    const [kind, seeds] = TARGETS[random.below(TARGETS.length)] ?? TARGETS[0]
    const input = mutate(random, seeds, words, 2000)
    parts.push(Buffer.from(kind), Buffer.from([input.length >> 8, input.length & 0xff]), input)
  }
  return Buffer.concat(parts)
}

const memory = (pid: number) =>
  Number(/^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
const descriptors = (pid: number) => readdirSync(`/proc/${pid}/fd`).length

forEachKind(
  'P17 after 20,000 mutated inputs the gateway serves, holds no more, and let nothing through',
  async (world, project) => {
    const seed = Math.floor(Math.random() * 2 ** 32)
    console.log(`seed ${seed}`)
    writeFileSync(join(project.workspace, 'mutants'), mutants(seed))
    copyFileSync(join(import.meta.dir, 'throw.py'), join(project.workspace, 'throw.py'))
    const heard = world.listen()
    const running = project.start(
      'echo begin; sleep 0.3; /usr/bin/python3 throw.py mutants; curl -s --retry 3 --retry-all-errors http://allowed.test/after; echo over; sleep 30',
      { allow: ['allowed.test:80', 'allowed.test:443'] },
    )
    await until(() => running.text.out.includes('begin'))
    const supervisor = supervisorOf(world, project.workspace)
    const before = { memory: memory(supervisor), descriptors: descriptors(supervisor) }
    await until(() => running.text.out.includes('over'), 55_000)
    expect(running.text.out).toContain(`thrown ${MUTANTS}`)
    expect(running.text.out).toContain(`hello from ${UP} 80\n`)
    await until(() => descriptors(supervisor) <= before.descriptors + 20, 15_000)
    expect(memory(supervisor)).toBeLessThan(before.memory + 150)
    running.child.kill('SIGTERM')
    await running.ended
    expect(heard.left.filter(flow => !flow.startsWith(`tcp ${UP} `))).toEqual([])
    expect(
      heard.requests.filter(
        line =>
          line.startsWith('request') &&
          line.split(' ')[4]?.replace(/:80$/, '').toLowerCase().replace(/\.$/, '') !== 'allowed.test',
      ),
    ).toEqual([])
    expect(heard.names.filter(name => name !== 'allowed.test')).toEqual([])
    const audit = project.audit()
    expect(audit.map(({ seq }) => seq)).toEqual(audit.map((_, i) => i + 1))
  },
  { timeout: 90_000, users: 'ordinary' },
)

forEachKind(
  'P17 slow clients are cut off in time, and others are served meanwhile',
  async (world, project) => {
    const heard = world.listen()
    const watch = new Stopwatch()
    const { steps } = await runSteps(
      project,
      {
        slow: `(timeout 6 slowhttptest -c 300 -H -i 1 -r 300 -l 5 -u http://127.0.0.1:1023/ -p 2; timeout 6 slowhttptest -c 300 -X -r 300 -l 5 -u http://allowed.test/ -p 2) >/dev/null 2>&1 & 
        sleep 0.5; for i in $(seq 20); do curl -s -m9 -o /dev/null -w '%{http_code} %{time_total}\\n' http://allowed.test/; sleep 0.1; done; kill %1; wait`,
        after: 'curl -s http://allowed.test/',
      },
      { allow: ['allowed.test:80'] },
    )
    const answers = steps.slow.said.trim().split('\n')
    expect(answers.filter(line => !line.startsWith('200 '))).toEqual([])
    expect(Math.max(...answers.map(line => 1000 * Number(line.split(' ')[1])))).toBeLessThan(
      1000 + watch.lost,
    )
    expect(steps.after.said).toBe(`hello from ${UP} 80\n`)
    expect(heard.left.filter(flow => flow.includes(EVIL))).toEqual([])
  },
)
