import { afterEach, beforeEach, expect, test } from 'bun:test'
import { lstatSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isOpenInside, type OpenFile } from './open-inside.ts'

let dir = ''
let file: OpenFile
const started: { kill(): void }[] = []

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'pen-open-'))
  const path = `${dir}/file`
  writeFileSync(path, '#!/bin/sh\n', { mode: 0o755 })
  const { dev, ino } = lstatSync(path, { bigint: true })
  file = { path, dev, ino }
})
afterEach(() => {
  for (const process of started.splice(0)) process.kill()
  rmSync(dir, { recursive: true, force: true })
})

/** A process tree whose last step is a long sleep, as the answer of the look at it. */
async function look(program: string): Promise<boolean | undefined> {
  const process = Bun.spawn(['python3', '-c', `${program}\nprint(flush=True); time.sleep(60)`, file.path], {
    stdout: 'pipe',
  })
  started.push(process)
  await process.stdout.getReader().read()
  let seen: boolean | undefined
  for (let tries = 0; tries < 20 && seen === undefined; tries++, await Bun.sleep(5))
    seen = isOpenInside(process.pid, file)
  return seen
}

const START = 'import os, sys, time, mmap, socket, threading, ctypes; path = sys.argv[1]'

test.each([
  ['nothing', 'os.close(os.open(path, os.O_RDWR))', false],
  ['a descriptor for writing', 'fd = os.open(path, os.O_WRONLY)', true],
  ['a descriptor for reading, which can be opened again', 'fd = os.open(path, os.O_RDONLY)', true],
  ['a descriptor for the path alone', 'fd = os.open(path, os.O_PATH)', true],
  [
    'a descriptor of a child',
    'fd = os.open(path, os.O_WRONLY) if os.fork() == 0 else 0; time.sleep(0.1)',
    true,
  ],
  [
    'a mapping without a descriptor',
    'fd = os.open(path, os.O_RDWR); m = mmap.mmap(fd, 4); os.close(fd)\nfor n in os.listdir("/proc/self/fd"):\n  if n > "2": os.closerange(int(n), int(n) + 1)',
    undefined,
  ],
  [
    'a write that waits in a system call, without a descriptor',
    `r, w = os.pipe(); fd = os.open(path, os.O_WRONLY)
threading.Thread(target=os.splice, args=(r, fd, 1), daemon=True).start(); time.sleep(0.1); os.close(fd)`,
    undefined,
  ],
  [
    'the program that a process runs',
    'import shutil, subprocess; shutil.copyfile("/bin/sleep", path); subprocess.Popen([path, "60"]); time.sleep(0.1)',
    true,
  ],
  [
    'a descriptor of a thread with its own table',
    `def own():
  ctypes.CDLL(None).unshare(0x400); os.open(path, os.O_RDWR); time.sleep(60)
threading.Thread(target=own, daemon=True).start(); time.sleep(0.1)`,
    true,
  ],
  [
    'a descriptor on its way through a socket',
    'a, b = socket.socketpair(); fd = os.open(path, os.O_RDWR); socket.send_fds(a, [b"x"], [fd]); os.close(fd)',
    undefined,
  ],
  [
    'one that waits in a connection which was not accepted',
    `s = socket.socket(socket.AF_UNIX); s.bind(path + "s"); s.listen(); c = socket.socket(socket.AF_UNIX); c.connect(path + "s")
fd = os.open(path, os.O_RDWR); socket.send_fds(c, [b"x"], [fd]); os.close(fd); c.close()`,
    undefined,
  ],
  [
    'what a process that runs may have',
    `end = time.time() + 2
if os.fork() == 0:
  while time.time() < end: pass
  os._exit(0)
time.sleep(0.1)`,
    undefined,
  ],
])('a look at a sandbox finds %s', async (_, program, answer) => {
  expect(await look(`${START}\n${program}`)).toBe(answer)
})
