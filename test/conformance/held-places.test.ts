/** Protected places that exist, and that the host removes or replaces while a sandbox runs. */
import { expect } from 'bun:test'
import { existsSync } from 'node:fs'
import { type LateProject, type LateRun, late } from './late-run.ts'

/** Starts a program inside that runs for some seconds. */
async function attack(project: LateProject, sandbox: LateRun, program: string): Promise<void> {
  project.host(`cat > attack.py <<'E'\n${program}\nE`)
  const started = 'python3 attack.py & until [ -e started ]; do sleep 0.01; done; rm started attack.py'
  expect((await sandbox.inside(started)).code).toBe(0)
}

async function until(isSo: () => boolean): Promise<void> {
  for (let i = 0; i < 500 && !isSo(); i++) await Bun.sleep(10)
}

late(
  'P3 a protected file that the host replaces stays, cannot be written inside, and the sandbox goes on',
  async ({ project, start }) => {
    project.host('echo old > .npmrc; echo old > .yarnrc.yml; mkdir .vscode')
    const sandbox = await start()
    // What changes before the first look is not certain to be the user's.
    await Bun.sleep(300)
    for (const text of ['one', 'two']) {
      project.host(`echo ${text} > draft; mv draft .npmrc`)
      await sandbox.within1s('grep -c "/.npmrc " /proc/self/mountinfo', ({ code }) => code === 0)
      const { said, code } = await sandbox.inside('cat .npmrc; echo evil > .npmrc')
      expect([said.split('\n')[0], code === 0]).toEqual([text, false])
      await Bun.sleep(600)
    }
    const { printed, code } = await sandbox.end()
    expect([code, printed]).toEqual([0, expect.stringContaining('.npmrc was replaced on the host')])
    expect(printed).not.toContain('moved to')
    expect(project.host('cat .npmrc .yarnrc.yml')).toBe('two\nold\n')
  },
  // Where pen may not look at the processes inside, it moves the file.
  { only: ({ isolation, who }) => isolation === 'process' || (isolation !== 'vm' && who.uid === 0) },
)

/** `.envrc` is denied too. */
const NAMES = ['.npmrc', '.envrc', '.vscode']

/** Opens each new file or directory at a place as soon as it is there, and writes to it a second later. */
const KEEPER = `
import os, time
kept = {}
open("started", "w").close()
end = time.time() + 8
while time.time() < end:
  for place in (".npmrc", ".vscode", ".envrc"):
    try:
      fd = os.open(place, os.O_PATH)
      ino = os.fstat(fd).st_ino
      if ino in kept: os.close(fd)
      else: kept[ino] = (fd, time.time())
    except OSError: pass
  for fd, since in kept.values():
    if time.time() < since + 1: continue
    for path in ("/proc/self/fd/%d" % fd, "/proc/self/fd/%d/tasks.json" % fd):
      try:
        evil = os.open(path, os.O_WRONLY | os.O_CREAT)
        os.write(evil, b"evil")
        os.close(evil)
      except OSError: pass`

late(
  'P3 a file or directory that a process inside opened before pen held it again is moved away',
  async ({ project, start }) => {
    project.host('echo old > .npmrc; echo old > .envrc; mkdir .vscode; mkdir new; echo mine > new/x')
    const sandbox = await start()
    await attack(project, sandbox, KEEPER)
    project.host(
      'for f in .npmrc .envrc; do echo new > draft; mv draft $f; done; mv .vscode old; mv new .vscode',
    )
    const isMoved = (): boolean => !NAMES.some(name => existsSync(`${project.workspace}/${name}`))
    await until(isMoved)
    expect((await sandbox.inside('echo on')).said).toBe('on\n')
    const { printed } = await sandbox.end()
    // On a busy machine the process may be late: then nothing opened the file, and it is the user's.
    const untouched = NAMES.filter(name => existsSync(`${project.workspace}/${name}`))
    for (const name of untouched) expect([name, project.host(`cat ${name}`)]).toEqual([name, 'new\n'])
    expect([untouched.includes('.vscode'), project.host('ls -A old')]).toEqual([false, ''])
    for (const name of NAMES.filter(name => !untouched.includes(name)))
      expect(printed).toContain(`${name} was removed or replaced on the host while the sandbox ran`)
    // Nothing is deleted.
    expect(project.host('cat "$HOME"/.pen/sandboxes/*/quarantine/*/*-.vscode/x')).toBe('mine\n')
  },
)

const PLANTER = `
import os, time
open("started", "w").close()
end = time.time() + 8
while time.time() < end:
  try:
    evil = os.open(".npmrc", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.close(evil)
  except OSError: pass
  try: os.mkdir(".vscode")
  except OSError: pass`

late(
  'P3 what a sandbox plants where the host removes a protected file or directory is moved away',
  async ({ project, start }) => {
    project.host('echo old > .npmrc; mkdir .vscode; echo old > .yarnrc.yml')
    const sandbox = await start()
    await attack(project, sandbox, PLANTER)
    project.host('rm -f .npmrc; rm -rf .vscode')
    await Bun.sleep(500)
    const { printed } = await sandbox.end()
    expect(printed).toContain('.npmrc was removed or replaced on the host while the sandbox ran')
    expect(project.host('ls -A; cat .yarnrc.yml')).toBe('.git\n.yarnrc.yml\nold\n')
  },
)

late(
  'P3 a sandbox whose git directory is replaced on the host is ended; commits on the host do not end it',
  async ({ project, start }) => {
    const sandbox = await start()
    expect((await sandbox.inside('git status --short; echo x > .git/mine')).code).toBe(0)
    project.host('git -c user.name=a -c user.email=a@example.com commit -q --allow-empty -m x')
    await Bun.sleep(300)
    expect((await sandbox.inside('echo on')).said).toBe('on\n')
    const ended = new Promise(resolve => sandbox.child.once('exit', resolve))
    project.host('mv .git old')
    await ended
    const { printed, code } = await sandbox.end()
    expect(code).toBe(137)
    expect(printed).toContain('.git was removed or replaced on the host')
    expect(project.host('mv old .git; git log --format=%s; ls .git/mine || true')).toBe('x\n')
  },
)
