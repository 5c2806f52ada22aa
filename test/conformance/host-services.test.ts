import { expect } from 'bun:test'
import { chmodSync, unlinkSync } from 'node:fs'
import { createServer, type Server } from 'node:net'
import { join } from 'node:path'
import { auditRecords } from '../audit-records.ts'
import { until } from '../until.ts'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'
import { stateDir } from './pen-command.ts'

/** A service of the host that every host user may use. */
async function serve(path: string): Promise<{ readonly server: Server; seen: number }> {
  const service = { server: createServer(), seen: 0 }
  service.server.on('connection', socket => {
    service.seen++
    socket.end('served')
  })
  await new Promise<void>(resolve => service.server.listen(path, resolve))
  chmodSync(path, 0o777)
  return service
}

/** From a guest's own kernel, also with a grant: `sockets-apart`. */
const REFUSED = 'ConnectionRefusedError\n'

const ASK = `import socket, sys, time
def ask(path):
    s = socket.socket(socket.AF_UNIX)
    try:
        s.connect(path)
        print(s.recv(10).decode(), flush=True)
    except OSError as e:
        print(type(e).__name__, flush=True)
`

conformance(
  'P10 a host service with its socket in the project is not reached; with its own grant it is',
  async box => {
    box.directory(join(box.project, 'db/run'))
    const path = join(box.project, 'db/run/s.sock')
    const service = await serve(path)
    try {
      const tried = await box.run(['python3', '-c', `${ASK}\nask('db/run/s.sock')`])
      expect([tried.stdout, service.seen]).toEqual(['PermissionError\n', 0])
      const granted = await box.run(['python3', '-c', `${ASK}\nask('db/run/s.sock')`], {
        flags: ['--write', path],
      })
      const reached = box.launcher.backend === 'vm' ? [REFUSED, 0] : ['served\n', 1]
      expect([granted.stdout, service.seen]).toEqual(reached)
    } finally {
      service.server.close()
    }
  },
)

/** How often a place was covered while the sandbox ran. */
const covers = (box: Box, path: string): number =>
  auditRecords<Record<string, unknown>>(stateDir(box)).filter(
    record => record['kind'] === 'place-held' && record['path'] === path && record['held'] === true,
  ).length

conformance(
  'P10 nor is a service that starts or restarts during the run; the sandbox’s own servers are reached',
  async box => {
    const path = join(box.project, 's.sock')
    const own = `import os
own = socket.socket(socket.AF_UNIX); own.bind('own.sock'); own.listen()
def printed(name):
    while not os.path.exists(name): time.sleep(0.01)
print('up', flush=True)
printed('first'); ask('s.sock')
print('again', flush=True)
printed('second'); ask('s.sock')
if os.fork() == 0: own.accept()[0].send(b'own'); os._exit(0)
ask('own.sock')`
    const started = box.start(['python3', '-c', `${ASK}\n${own}`])
    const isCovered = (times: number) => covers(box, path) === times
    await started.printed('up')
    const first = await serve(path)
    await until(() => isCovered(1))
    box.file('first', '')
    await started.printed('again')
    first.server.close()
    try {
      unlinkSync(path)
    } catch {
      // The server removed it itself.
    }
    const second = await serve(path)
    try {
      await until(() => isCovered(2))
      box.file('second', '')
      const { stdout, stderr } = await started.ended
      expect(stdout).toBe('up\nPermissionError\nagain\nPermissionError\nown\n')
      expect([first.seen, second.seen]).toEqual([0, 0])
      expect(stderr).toContain('s.sock')
    } finally {
      second.server.close()
    }
  },
)

/** A service of the user that names its socket relative to its directory. */
async function serveFrom(box: Box, cwd: string, name: string, then = ''): Promise<Disposable> {
  const script = `import socket
s = socket.socket(socket.AF_UNIX); s.bind(${JSON.stringify(name)}); s.listen()
${then}
print('up', flush=True)
while True: s.accept()[0].send(b'served')`
  const service = Bun.spawn([...box.launcher.who.become, '/usr/bin/python3', '-c', script], {
    env: box.env(),
    cwd: box.directory(cwd),
    stdout: 'pipe',
  })
  await service.stdout.getReader().read()
  return { [Symbol.dispose]: () => service.kill('SIGKILL') }
}

conformance(
  'P10 a service with a relative socket name is not reached; the same name elsewhere closes nothing',
  async box => {
    box.directory(join(box.project, 'run'))
    using _top = await serveFrom(box, box.project, 'run/top.sock')
    using _below = await serveFrom(box, join(box.project, 'deep/er'), '../s.sock')
    using _elsewhere = await serveFrom(box, join(box.home, 'other'), 'own.sock')
    const own = `import os
own = socket.socket(socket.AF_UNIX); own.bind('own.sock'); own.listen()
if os.fork() == 0: own.accept()[0].send(b'own'); os._exit(0)
time.sleep(0.8); ask('own.sock'); ask('run/top.sock'); ask('deep/s.sock')`
    const { stdout } = await box.run(['python3', '-c', `${ASK}\n${own}`])
    expect(stdout).toBe('own\nPermissionError\nPermissionError\n')
    const granted = await box.run(['python3', '-c', `${ASK}\nask('run/top.sock')`], {
      flags: ['--write', join(box.project, 'run/top.sock')],
    })
    expect(granted.stdout).toBe(box.launcher.backend === 'vm' ? REFUSED : 'served\n')
  },
)

conformance(
  'P10 a service with a relative name whose place pen cannot tell is named before the command runs',
  async box => {
    // Without a terminal pen prints notes on the first run only.
    const LINE = /^pen: note: services of yours listen .* pen cannot tell where they are: .*lost\.sock/m
    using _lost = await serveFrom(box, join(box.project, 'deep'), 'lost.sock', "import os; os.chdir('/')")
    expect((await box.run(['true'])).stderr).toMatch(LINE)
  },
)
