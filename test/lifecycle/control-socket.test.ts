import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { lstatSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { isRoot } from '../conformance/launcher.ts'
import { lifecycleTest, START } from './project-sandbox.ts'

const STRANGER = 64_399

if (isRoot)
  lifecycleTest(
    'P21 a second user can neither use nor see the control socket, even when its path is open',
    async here => {
      await here.pen(...START)
      const { stateDir } = here
      const socket = join(stateDir, 'control')
      expect(lstatSync(socket).mode & 0o777).toBe(0o600)
      const knock = `import socket,sys
s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); s.sendall(b'\\0\\0\\0\\x0f\\x20\\0\\0\\0\\0{"want":"ping"}'); sys.stdout.write('%d' % len(s.recv(100)))`
      const as = (uid: number) =>
        spawnSync(
          'setpriv',
          [`--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '/usr/bin/python3', '-c', knock, socket],
          { encoding: 'utf8' },
        )
      const { uid } = here.box.launcher.who
      expect(as(STRANGER).stderr).toContain('PermissionError')
      // The whole path was opened by mistake. The supervisor still checks the peer.
      for (const path of [
        join(here.box.home, '.pen'),
        join(here.box.home, '.pen/sandboxes'),
        stateDir,
        socket,
      ])
        spawnSync('chmod', ['a+rwx', path])
      const stranger = as(STRANGER)
      expect(stranger.stderr).not.toContain('PermissionError')
      expect(stranger.stdout).not.toMatch(/[1-9]/)
      expect(Number(as(uid).stdout)).toBeGreaterThan(9)
      spawnSync('chmod', ['700', join(here.box.home, '.pen')])
      spawnSync('chmod', ['700', join(here.box.home, '.pen/sandboxes'), stateDir])
    },
  )

lifecycleTest('P10 nothing inside the sandbox leads to its control socket', async here => {
  await here.pen(...START)
  const socket = join(here.stateDir, 'control')
  const tries = await here.sh(
    `ls '${socket}' '${here.stateDir}' /proc/*/root'${socket}' 2>/dev/null; cat /proc/net/unix | grep -c control; true`,
  )
  expect(tries.stdout).toBe('0\n')
})

lifecycleTest('P10 garbage on the control socket does not harm the sandbox', async here => {
  await here.pen(...START)
  const path = join(here.stateDir, 'control')
  const bytes = (n: number) => crypto.getRandomValues(new Uint8Array(n))
  const request = (text: string) => {
    const head = Buffer.alloc(9)
    head.writeUInt32BE(text.length, 0)
    head[4] = 32
    return Buffer.concat([head, Buffer.from(text)])
  }
  const pieces = [
    () => bytes(1 + Math.floor(Math.random() * 4000)),
    () => request('{"want":"exec","timeoutMs":null}'),
    () => Buffer.concat([request('{"want":"exec","timeoutMs":null}'), bytes(300)]),
    () => request(`{"want":"${'x'.repeat(500)}"}`),
    () => Buffer.alloc(9),
  ]
  await Promise.all(
    Array.from(
      { length: 100 },
      (_, i) =>
        new Promise<void>(resolve => {
          const client = connect(path)
          client.on('error', () => {})
          client.on('close', () => resolve())
          client.write(pieces[i % pieces.length]?.() ?? '')
          // Idle clients are disconnected by the supervisor, or leave by themselves.
          setTimeout(() => client.destroy(), 300 + i)
        }),
    ),
  )
  expect(await here.sh('echo well')).toMatchObject({ code: 0, stdout: 'well\n' })
  expect(JSON.parse((await here.pen('status', '--json')).stdout)).toMatchObject({ executions: 0 })
})
