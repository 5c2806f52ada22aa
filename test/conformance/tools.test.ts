/**
 * Which programs a sandbox has, and which of its own files it can run. The system's programs are the host's or
 * those of an image.
 */
import { expect } from 'bun:test'
import { chmodSync, copyFileSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'
import type { Ran } from './launcher.ts'

/** As a project's document, which only removes permissions. */
const restrict = (box: Box, tools: object): string =>
  box.file('agent-permissions.json', JSON.stringify({ version: 1, tools }))

async function withTools(box: Box, tools: object, ...command: string[]): Promise<Ran> {
  restrict(box, tools)
  return await box.run(command)
}

const python = (box: Box, tools: object, source: string): Promise<Ran> =>
  withTools(box, tools, 'python3', '-c', source)

conformance('P12 only the programs that the policy lists are there, and they work', async box => {
  const tools = { allow: ['git', 'ls', 'python3'] }
  expect((await withTools(box, tools, 'git', 'init', '-q', 'made')).code).toBe(0)
  const { stdout } = await withTools(
    box,
    tools,
    ...['ls', '/usr/bin', '/bin/', '/usr/sbin', '/usr/local/bin'],
  )
  const names = stdout.split('\n').filter(line => line !== '' && !line.startsWith('/'))
  expect(names.filter(name => !/^(git|ls|python3(\.\d+)?)$/.test(name))).toEqual([])
  expect(names).toContain('git')
})

conformance('P12 a program that is not listed is not found, and pen says why', async box => {
  const { code, stderr } = await withTools(box, { allow: ['git'] }, 'ls')
  expect(code).toBe(127)
  expect(stderr).toContain('ls is not among the tools that this policy lists')
  expect((await withTools(box, { allow: ['git', 'ls'] }, 'ls')).code).toBe(0)
})

conformance('P12 the directories of programs cannot be written', async box => {
  const write = (path: string) => `
try: open("${path}", "w").close(); print("written")
except OSError as error: print(error.strerror)`
  const both = `${write('/usr/bin/planted')}${write('/tmp/planted')}`
  expect((await python(box, { allow: ['python3'] }, both)).stdout).toBe('Read-only file system\nwritten\n')
})

const SHELLS = ['sh', '/bin/sh', '/usr/bin/dash', 'bash', '/usr/bin/rbash']
const START_EACH = `
import subprocess
for name in ${JSON.stringify(SHELLS)}:
  try: print(subprocess.run([name, "-c", "echo ran"], capture_output=True, text=True).stdout.strip())
  except FileNotFoundError: print("absent")
  except PermissionError: print("refused")`

conformance('P12 without a shell none can be started, by any name', async box => {
  const each = async (tools: object) => (await python(box, tools, START_EACH)).stdout.trim().split('\n')
  const some = await each({ shell: true })
  expect(some.filter(word => word !== 'ran' && word !== 'absent')).toEqual([])
  expect(some.slice(0, 2)).toEqual(['ran', 'ran'])
  expect(await each({ shell: false })).toEqual(some.map(word => (word === 'ran' ? 'refused' : word)))
})

conformance('P12 a shell cannot be read for copying either', async box => {
  const read = 'import os; print(len(open(os.path.realpath("/bin/sh"), "rb").read()))'
  expect((await python(box, { shell: false }, read)).stderr).toContain('PermissionError')
  expect(Number((await python(box, {}, read)).stdout)).toBeGreaterThan(1000)
})

conformance('P12 a listed shell stays hidden when the policy has no shell', async box => {
  const start = (shell: boolean) => withTools(box, { shell, allow: ['bash', 'git'] }, 'bash', '-c', 'true')
  const { code, stderr } = await start(false)
  expect([code, stderr.includes('bash is ')]).toEqual([127, true])
  expect((await start(true)).code).toBe(0)
})

/** The result of each attempt of exec.py. */
async function attempts(box: Box, tools: object): Promise<Map<string, string>> {
  box.file('exec.py', readFileSync(join(import.meta.dir, 'exec.py'), 'utf8'))
  const planted = box.file('planted', '')
  copyFileSync('/usr/bin/true', planted)
  chmodSync(planted, 0o755)
  const { stdout, stderr, code } = await withTools(box, tools, 'python3', 'exec.py')
  if (code !== 0) throw new Error(`exec.py ended with ${code}: ${stderr}`)
  const lines = stdout.trim().split('\n')
  return new Map(
    lines
      .map(line => JSON.parse(line) as { name: string; outcome: string })
      // A guest's files have no O_TMPFILE, for data neither.
      .filter(({ outcome }) => outcome !== 'ENOTSUP')
      // A guest's kernel may be older than such memory (Linux 6.3).
      .filter(({ name, outcome }) => outcome !== 'EINVAL' || !name.includes('sealed against execution'))
      .map(({ name, outcome }) => [name, outcome]),
  )
}

conformance('P12 nothing runs that the sandbox wrote or brought, in any way', async box => {
  const found = await attempts(box, { exec: 'listed' })
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

conformance('P12 the same attempts all work where exec is "any"', async box => {
  const found = await attempts(box, { exec: 'any' })
  expect([...found].filter(([, outcome]) => outcome !== 'ok')).toEqual([])
})

conformance('P12 every mount but those of the system is noexec', async box => {
  const { stdout } = await withTools(box, { exec: 'listed' }, 'cat', '/proc/self/mountinfo')
  const mounts = stdout
    .trim()
    .split('\n')
    .map(line => line.split(' '))
  // A mount at the same path hides the one below it completely.
  const isHidden = ([id, , , , path]: string[]): boolean =>
    mounts.some(([, parent, , , at]) => parent === id && at === path)
  const executable = mounts.filter(words => !words[5]?.split(',').includes('noexec') && !isHidden(words))
  expect(executable.filter(words => !words[5]?.split(',').includes('ro'))).toEqual([])
  const paths = executable.map(words => words[4] ?? '')
  expect(paths).toContain(box.launcher.isolation === 'container' ? '/' : '/usr')
  // Of a container: where its exec daemon runs from, and pen for commands.
  const system = /^\/($|usr|opt|bin|sbin|lib|nix|gnu|\.pen-[0-9a-f]{16}($|\/)|run\/pen\/pen$)/
  expect(paths.filter(path => !system.test(path))).toEqual([])
})

const TELL_ALL = `
import os, json
fds = sorted(int(fd) for fd in os.listdir("/proc/self/fd"))[:3]
status = [line.split() for line in open("/proc/self/status")]
keep = {words[0]: words[1] for words in status if words[0] in ("SigBlk:", "CapEff:", "NoNewPrivs:", "Seccomp:")}
ignored = [int(words[1], 16) & ~0x1001000 for words in status if words[0] == "SigIgn:"]
print(json.dumps([fds, len(os.listdir("/proc/self/fd")), keep, ignored, sorted(os.environ.items())]))`

conformance('P12 with "listed" a command keeps its descriptors, signals and variables', async box => {
  const tell = async (exec: string) => (await python(box, { exec }, TELL_ALL)).stdout
  const listed = await tell('listed')
  expect(listed).toStartWith('[[0, 1, 2]')
  expect(listed).toBe(await tell('any'))
})

const HELPER = `
import os, subprocess
helper = "/usr/lib/git-core/git-remote-http"
print(subprocess.run([helper], capture_output=True).returncode if os.path.exists(helper) else "absent")`

conformance('P12 with a list, a helper program of another program is refused', async box => {
  const start = (...allow: string[]) => python(box, { exec: 'listed', allow }, HELPER)
  const twin = await start('python3', 'git')
  expect(twin.code).toBe(0)
  if (twin.stdout.trim() !== 'absent') expect((await start('python3')).stderr).toContain('PermissionError')
})

conformance('P12 with "listed", the first process cannot be changed from inside', async box => {
  const write = `
for pid in "1", "self":
  try: open("/proc/%s/mem" % pid, "r+b", buffering=0); print("open")
  except PermissionError: print("refused")`
  expect((await python(box, { exec: 'listed' }, write)).stdout).toBe('refused\nopen\n')
})
