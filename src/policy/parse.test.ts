import { describe, expect, test } from 'bun:test'
import { PenError, showPlace } from '../base/error.ts'
import { readJson } from '../config/json/json.ts'
import type { HostPath, PathWorld, Trust } from './files/path.ts'
import { printRule } from './network/net-rule.ts'
import { parseLayer } from './parse.ts'

const LINKS: Readonly<Record<string, string>> = {
  '/h/u/ws/out': '/etc',
  '/alias': '/h/u/ws',
  '/data/out': '/h/u/.ssh',
}

const world: PathWorld = {
  workspace: '/h/u/ws' as HostPath,
  home: '/h/u' as HostPath,
  state: '/h/u/.pen' as HostPath,
  locate: path => {
    const link = Object.keys(LINKS).find(from => path === from || path.startsWith(`${from}/`))
    return { real: link === undefined ? path : LINKS[link] + path.slice(link.length), kind: 'directory' }
  },
}

const parse = (text: string, trust: Trust = 'user') =>
  parseLayer(readJson(new TextEncoder().encode(text), 'config.json'), {
    name: 'live config',
    trust,
    world,
    isPublicSuffix: name => ['com', 'co.uk'].includes(name),
  }).settings

function refusal(text: string, trust: Trust = 'user'): string {
  try {
    parse(text, trust)
  } catch (error) {
    if (!(error instanceof PenError)) throw error
    expect(error.exitCode).toBe(2)
    expect(error.hint).not.toBe('')
    return [error.message, showPlace(error.at ?? ''), error.hint].join(' | ')
  }
  throw new Error(`${text} was taken`)
}

describe('a layer', () => {
  test('says nothing of a key that is absent, and empties a list that is empty', () => {
    expect(parse('{}')).toEqual({})
    const settings = parse('{"files":{"read":[]},"network":{"http":[],"deny":[]},"tools":{"allow":[]}}')
    expect(Object.keys(settings)).toEqual(['files.read', 'network.http', 'network.deny', 'tools.allow'])
    for (const list of Object.values(settings)) expect(list).toEqual({ clear: true, items: [] })
  })

  test('remembers the line of every entry', () => {
    const settings = parse('{ "network": {\n "http": [\n  "a.test",\n  "b.test:8443"\n] } }')
    expect(
      settings['network.http']?.items.map(({ rule, source }) => [printRule(rule), source.place?.line]),
    ).toEqual([
      ['a.test:443', 3],
      ['b.test:8443', 4],
    ])
  })

  test('grants canonical paths, as specific as they are deep', () => {
    const settings = parse('{"files":{"read":["/usr/share/dict"],"write":["./output","~/x"]}}')
    expect(settings['files.read']?.items[0]?.rule).toEqual({ path: '/usr/share/dict' as HostPath, rank: 3 })
    expect(settings['files.write']?.items.map(({ rule }) => rule.path as string)).toEqual([
      '/h/u/ws/output',
      '/h/u/x',
    ])
  })

  test('denies an alias by its real name too', () => {
    expect(parse('{"files":{"deny":["/alias/secret"]}}')['files.deny']?.items[0]?.rule).toEqual({
      kind: 'path',
      path: '/h/u/ws/secret',
      alias: '/alias/secret',
    })
  })

  test('keeps a protected name as it is written: the name itself is protected', () => {
    expect(parse('{"files":{"protect":["out"]}}')['files.protect']?.items[0]?.rule.path).toBe('/h/u/ws/out')
  })

  test('reads variables, and passes on the host’s by name', () => {
    const env = parse('{"env":{"A":"1","B":{"from":"host"}}}').env
    expect([...(env ?? [])].map(([name, { value }]) => [name, value.kind])).toEqual([
      ['A', 'text'],
      ['B', 'host'],
    ])
  })

  test('mounts read-only unless it says otherwise', () => {
    const mounts = parse(
      '{"mounts":[{"host":"/data","at":"/d"},{"host":"/data","at":"/e","mode":"rw"}]}',
    ).mounts
    expect(mounts?.items.map(({ rule }) => rule.kind === 'host' && rule.mode)).toEqual(['ro', 'rw'])
  })
})

describe('one bad entry refuses the whole document', () => {
  test.each([
    ['{"files":{"read":["src/*"]}}', 'files.read "src/*": grants take no patterns | config.json:1:19'],
    ['{"files":{"read":["../x"]}}', 'files.read "../x": the path leads out of the workspace'],
    ['{"files":{"read":["out/shadow"]}}', 'files.read "out/shadow": the path is a link that leads out'],
    ['{"files":{"write":["/"]}}', 'files.write "/": the whole disk cannot be granted'],
    ['{"files":{"write":["~"]}}', 'files.write "~": the whole home directory cannot be granted'],
    ['{"files":{"read":["/proc/self"]}}', 'files.read "/proc/self": /proc is the running system'],
    ['{"files":{"read":["~/.pen/x"]}}', 'files.read "~/.pen/x": the path is pen\'s own state'],
    ['{"files":{"deny":["/h/u/*"]}}', 'files.deny "/h/u/*": patterns are anchored at the workspace'],
    ['{"files":{"deny":["/alias"]}}', 'files.deny "/alias": this would deny the whole workspace'],
    ['{"files":{"deny":["*"]}}', 'files.deny "*": it matches everything'],
    ['{"files":{"deny":["a/**/b"]}}', 'files.deny "a/**/b"'],
    ['{"files":{"protect":["*.sh"]}}', 'files.protect "*.sh": protected places take no patterns'],
    ['{"files":{"protect":["/etc"]}}', 'files.protect "/etc": only places inside the workspace'],
    ['{"files":{"protect":["."]}}', 'files.protect ".": only places inside the workspace'],
    ['{"network":{"http":[""]}}', 'network.http ""'],
    ['{"network":{"http":["https://a.test"]}}', 'network.http "https://a.test"'],
    ['{"network":{"http":["*"]}}', 'network.http "*": a bare star would mean every name'],
    ['{"network":{"http":["*.co.uk"]}}', 'network.http "*.co.uk": anyone can have a name under'],
    ['{"network":{"http":["10.0.0.1:443"]}}', 'network.http "10.0.0.1:443"'],
    ['{"network":{"tcp":["a.test:443"]}}', 'network.tcp "a.test:443"'],
    ['{"network":{"tcp":["127.0.0.1:80"]}}', 'network.tcp "127.0.0.1:80"'],
    [
      '{"network":{"groups":["nmp"]}}',
      'network.groups "nmp": no such group | config.json:1:23 | did you mean "npm"?',
    ],
    ['{"network":{"idle":"soon"}}', '"soon" is not a duration | config.json:1:20'],
    ['{"limits":{"memory":"lots"}}', '"lots" is not a size | config.json:1:21'],
    ['{"limits":{"cpus":0}}', 'limits.cpus: cpus must be from 0.01'],
    ['{"limits":{"pids":1.5}}', 'limits.pids: pids must be a whole number'],
    ['{"env":{"1A":"x"}}', 'env: 1A: not a variable name | config.json:1:14'],
    ['{"env":{"A=B":"x"}}', 'env: A=B: not a variable name'],
    ['{"env":{"":"x"}}', 'env: : not a variable name'],
    ['{"env":{"AGENT_IN_SANDBOX":"0"}}', 'env: AGENT_IN_SANDBOX: this variable is set by pen alone'],
    ['{"env":{"PEN_PROXY":"x"}}', 'env: PEN_PROXY: this variable is set by pen alone'],
    ['{"mounts":[{"host":"/","at":"/d"}]}', 'mounts: the whole disk cannot be granted | config.json:1:12'],
    ['{"mounts":[{"host":"/data","at":"d"}]}', 'mounts: the path inside must be absolute'],
    ['{"mounts":[{"host":"/data","at":"/proc"}]}', "mounts: /proc inside the sandbox is pen's own"],
    ['{"mounts":[{"volume":"../x","at":"/v"}]}', 'mounts: a volume is named with'],
    ['{"tools":{"allow":["/bin/sh"]}}', 'tools.allow "/bin/sh": a tool is named without a path'],
    ['{"tools":{"allow":[".."]}}', 'tools.allow ".."'],
    ['{"user":"root"}', 'user "root": the user is "host" or "uid:gid" without root'],
    ['{"user":"0:0"}', 'user "0:0"'],
    ['{"runtime":"./runc"}', 'runtime "./runc": a runtime is named without a path'],
    ['{"ssh":{"agent":{"keys":["md5:x"]}}}', 'ssh.agent.keys "md5:x": not a key fingerprint'],
    ['{"ssh":{"agent":{"hosts":["github.com"]}}}', 'ssh.agent.hosts "github.com": not a server with a port'],
    ['{"acceptGaps":["All Gaps"]}', 'acceptGaps "All Gaps": not the name of a gap'],
    ['{"ports":[{"guest":0,"host":80}]}', 'ports: a port is a number from 1 to 65535'],
    ['{"image":{"args":{"a-b":"x"}}}', 'image: "a-b" is not a build argument'],
    [
      '{"network":{"upstreamProxy":"socks5://proxy.test"}}',
      'network.upstreamProxy: not the address of an HTTP proxy',
    ],
  ])('%s', (text, message) => {
    expect(refusal(text)).toStartWith(message)
  })

  test('a link that the sandbox could have made in a place it may write is not followed out of it', () => {
    for (const text of [
      '{"files":{"write":["/data"],"read":["/data/out"]}}',
      '{"files":{"write":["/data","/data/out/id_rsa"]}}',
      '{"files":{"write":["/data"]},"mounts":[{"host":"/data/out","at":"/m"}]}',
      '{"files":{"read":["/data/out"]},"mounts":[{"host":"/data","at":"/m","mode":"rw"}]}',
    ])
      expect([text, refusal(text)]).toEqual([
        text,
        expect.stringContaining('is a link out of /data, which the'),
      ])
    // Where it may not write, the link is the user's own.
    const { 'files.read': read } = parse('{"files":{"read":["/data","/data/out","/data/in"]}}')
    expect(read?.items.map(({ rule }) => rule.path as string)).toEqual(['/data', '/h/u/.ssh', '/data/in'])
    expect(
      parse('{"files":{"write":["/data"],"read":["/data/in","/h/u/.ssh"]}}')['files.read']?.items.length,
    ).toBe(2)
  })

  test('an untrusted document names nothing outside the workspace, and may name what is inside', () => {
    expect(refusal('{"files":{"read":["/data"]}}', 'untrusted')).toContain('leads out of the workspace')
    expect(refusal('{"files":{"read":["a/../b"]}}', 'untrusted')).toContain('contains ".."')
    expect(refusal('{"mounts":[{"host":"~/.ssh","at":"/s"}]}', 'untrusted')).toContain('leads out')
    expect(parse('{"files":{"read":["src"]}}', 'untrusted')['files.read']?.items).toHaveLength(1)
  })

  test('a password in a proxy address is not repeated', () => {
    expect(refusal('{"network":{"upstreamProxy":"ftp://u:canary@proxy.test"}}')).not.toContain('canary')
    expect(parse('{"network":{"upstreamProxy":"http://u:canary@proxy.test:3128"}}')).toHaveProperty([
      'network.upstreamProxy',
    ])
  })

  test('hostile text is shown escaped', () => {
    expect(refusal('{"files":{"read":["a\\u0007b"]}}')).not.toContain('\u0007')
  })
})
