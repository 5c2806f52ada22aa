import { afterAll, beforeAll, describe, expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { forEachUser, PEN, preparePen, type Run, removePen } from './run-tools.ts'

beforeAll(preparePen)
afterAll(removePen)

/** What each attempt of exec.py came to. */
function attempts(run: Run): Map<string, string> {
  const { out, err, code } = run(['python3', 'exec.py'])
  if (code !== 0) throw new Error(`exec.py ended with ${code}: ${err}`)
  return new Map(
    out
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as { name: string; outcome: string })
      .map(({ name, outcome }) => [name, outcome]),
  )
}

const ask = (run: Run, source: string) => run(['python3', '-c', source])

describe('tools.allow', () => {
  forEachUser('P12 only the programs that the policy lists are there, and they work', project => {
    const run = project({ allow: ['git', 'ls', 'python3'] })
    expect(run(['git', 'init', '-q', 'made']).code).toBe(0)
    const { out } = run(['ls', '/usr/bin', '/bin/', '/usr/sbin', '/usr/local/bin'])
    const names = out.split('\n').filter(line => line !== '' && !line.startsWith('/'))
    expect(names.filter(name => !/^(git|ls|python3(\.\d+)?)$/.test(name))).toEqual([])
    expect(names).toContain('git')
  })

  forEachUser('P12 a program that is not listed is not found, and pen says why', project => {
    const { code, err } = project({ allow: ['git'] })(['ls'])
    expect(code).toBe(127)
    expect(err).toContain('ls is not among the tools that this policy lists')
    expect(project({ allow: ['git', 'ls'] })(['ls']).code).toBe(0)
  })

  forEachUser('P12 the directories of programs cannot be written', project => {
    const write = 'open("/usr/bin/planted", "w")'
    const { code, err } = ask(project({ allow: ['python3'] }), write)
    expect(code).toBe(1)
    expect(err).toContain('Read-only file system')
  })

  forEachUser('P12 npm works when node is listed beside it', project => {
    if (!existsSync('/usr/bin/npm')) return
    const { code, out } = project({ allow: ['npm', 'node'] })(['npm', '--version'])
    expect([code, /^\d+\./.test(out)]).toEqual([0, true])
    expect(project({ allow: ['npm'] })(['npm', '--version']).code).toBe(127)
  })

  forEachUser('P12 a plan notes what a listed script needs, and what the machine lacks', project => {
    const notes = (...allow: string[]) => project({ allow, shell: false })(['git'], { verb: 'plan' }).out
    expect(notes('no-such-tool', 'sh')).toContain(
      'tools.allow lists no-such-tool, which this machine does not',
    )
    expect(notes('sh')).toContain('tools.allow lists sh, but it is a shell and tools.shell is false')
    expect(notes('git')).not.toContain('note: ')
    if (!existsSync('/usr/bin/npm')) return
    expect(notes('npm')).toContain('npm needs node: list it too')
    expect(notes('npm', 'node')).not.toContain('note: ')
  })
})

describe('tools.shell', () => {
  const start = (name: string) =>
    `import subprocess; print(subprocess.run(["${name}", "-c", "echo ran"], capture_output=True, text=True).stdout)`

  forEachUser('P12 without a shell none can be started, by any name', project => {
    const none = project({ shell: false })
    const some = project({ shell: true })
    for (const shell of ['sh', '/bin/sh', '/usr/bin/dash', 'bash', '/usr/bin/rbash']) {
      if (shell.startsWith('/') && !existsSync(shell)) continue
      expect([shell, ask(none, start(shell)).err.includes('PermissionError')]).toEqual([shell, true])
      expect([shell, ask(some, start(shell)).out.trim()]).toEqual([shell, 'ran'])
    }
  })

  forEachUser('P12 a shell cannot be read either, to be copied', project => {
    const read = 'import os; print(len(open(os.path.realpath("/bin/sh"), "rb").read()))'
    expect(ask(project({ shell: false }), read).err).toContain('PermissionError')
    expect(Number(ask(project({}), read).out)).toBeGreaterThan(1000)
  })

  forEachUser('P12 without a shell pen run needs a command, and says so', project => {
    const { code, err } = project({ shell: false })([])
    expect(code).toBe(127)
    expect(err).toContain('this policy has none (tools.shell is false)')
    expect(err).toContain('pen run -- COMMAND')
  })

  forEachUser('P12 a shell that is listed stays away when the policy has none', project => {
    const { code, err } = project({ shell: false, allow: ['bash', 'git'] })(['bash', '-c', 'true'])
    expect([code, err.includes('bash')]).toEqual([127, true])
    expect(project({ shell: true, allow: ['bash', 'git'] })(['bash', '-c', 'true']).code).toBe(0)
  })
})

describe('tools.exec "listed"', () => {
  forEachUser('P12 nothing runs that the sandbox wrote or brought, in any way', project => {
    const found = attempts(project({ exec: 'listed' }))
    const ran = [...found].filter(([name, outcome]) => !name.startsWith('twin: ') && outcome === 'ok')
    expect(ran).toEqual([])
    expect(found.get('from memory')).toBe('ENOSYS')
    expect(found.get('script')).toBe('EACCES')
    expect(found.get('map as code from .')).toBe('EPERM')
    expect(found.get('library from the workspace')).toBe('refused')
    const twins = [...found].filter(([name, outcome]) => name.startsWith('twin: ') && outcome !== 'ok')
    expect(twins).toEqual([])
    expect(found.size).toBeGreaterThan(30)
  })

  forEachUser('P12 the same attempts all work where exec is "any"', project => {
    const found = attempts(project({ exec: 'any' }))
    expect([...found].filter(([, outcome]) => outcome !== 'ok')).toEqual([])
  })

  forEachUser('P12 every mount but those of the system is noexec', project => {
    const { out } = project({ exec: 'listed' })(['cat', '/proc/self/mountinfo'])
    const executable = out
      .trim()
      .split('\n')
      .map(line => line.split(' '))
      .filter(words => !words[5]?.split(',').includes('noexec'))
    expect(executable.filter(words => !words[5]?.split(',').includes('ro'))).toEqual([])
    const paths = executable.map(words => words[4] ?? '')
    expect(paths.filter(path => !/^\/($|usr|opt|bin|sbin|lib|nix|gnu)/.test(path))).toEqual([])
  })

  forEachUser('P12 the command is no other than without it: descriptors, signals, variables', project => {
    const source = `
import os, signal, json
fds = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:3]
status = [line.split() for line in open("/proc/self/status")]
keep = {words[0]: words[1] for words in status if words[0] in ("SigBlk:", "CapEff:", "NoNewPrivs:", "Seccomp:")}
ignored = [int(words[1], 16) & ~0x1001000 for words in status if words[0] == "SigIgn:"]
print(json.dumps([fds, len(os.listdir("/proc/self/fd")), keep, ignored, sorted(os.environ.items())]))`
    const without = (text: string) =>
      text.replaceAll(/home-\d+/g, 'home').replaceAll(/project-[0-9a-f]+/g, 'project')
    expect(without(ask(project({ exec: 'listed' }), source).out)).toBe(
      without(ask(project({ exec: 'any' }), source).out),
    )
  })

  forEachUser('P12 with a list, a helper of another program is refused', project => {
    const helper = join(
      spawnSync('git', ['--exec-path'], { encoding: 'utf8' }).stdout.trim(),
      'git-remote-http',
    )
    if (!existsSync(helper)) return
    const source = `import subprocess\nprint(subprocess.run(["${helper}"], capture_output=True).returncode)`
    expect(ask(project({ exec: 'listed', allow: ['python3'] }), source).err).toContain('PermissionError')
    expect(ask(project({ exec: 'listed', allow: ['python3', 'git'] }), source).code).toBe(0)
  })

  forEachUser('P12 the process that is outside of the lock cannot be changed from inside', project => {
    const run = project({ exec: 'listed' })
    const write = (pid: string) => ask(run, `open("/proc/${pid}/mem", "r+b", buffering=0)`)
    expect(write('1').err).toContain('PermissionError')
    expect(write('self').code).toBe(0)
  })

  forEachUser('P12 the inner mode starts nothing for those who have no order', () => {
    for (const env of [{}, { AGENT_IN_SANDBOX: '1' }]) {
      const { status, stderr } = spawnSync(PEN, ['__listed', '8', '9'], { env, encoding: 'utf8' })
      expect([status, stderr.includes('is not a verb')]).toEqual([2, true])
    }
  })

  forEachUser('P20 a pen that cannot hold it stops, unless the gap is accepted by name', project => {
    const source = [process.execPath, join(import.meta.dir, '../../src/main.ts')]
    const { code, err } = project({ exec: 'listed' })(['true'], { pen: source })
    expect([code, err.includes('--accept-gap exec-unlisted')]).toEqual([125, true])
    expect(project({ exec: 'any' })(['true'], { pen: source }).code).toBe(0)
  })
})
