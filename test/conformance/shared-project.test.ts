import { expect } from 'bun:test'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { LateRun, late } from './late-run.ts'
import { PEN } from './launcher.ts'

late(
  'P3 beside another sandbox of the project, every place is held, and work goes on',
  async ({ project, start }) => {
    project.host(
      'mkdir -p .vscode secrets/a config; echo KEY >.env; echo {} >.vscode/tasks.json; echo KEY >secrets/a/key; echo KEY >config/key',
    )
    const flags = ['--deny', 'secrets', '--deny', 'config/key', '--deny', '**/.env.local']
    await start(...flags)
    const second = project.start(...flags)
    try {
      const read = await second.inside('cat .env secrets/a/key config/key')
      expect([read.said.includes('KEY'), read.code]).toEqual([false, 1])
      expect((await second.inside('echo x >.vscode/tasks.json')).code).not.toBe(0)
      expect((await second.inside('mv config other')).code).not.toBe(0)
      expect((await second.inside('rm -rf secrets .env .vscode')).code).not.toBe(0)
      expect(await second.inside('cat .vscode/tasks.json; echo new >file')).toMatchObject({
        said: '{}\n',
        code: 0,
      })
      const commit =
        'git add file && git -c user.name=a -c user.email=a@b.example commit -qm new && git log --format=%s'
      expect((await second.inside(commit)).said).toBe('new\n')
    } finally {
      await second.end()
    }
    expect(project.host('cat .env .vscode/tasks.json secrets/a/key config/key file')).toBe(
      'KEY\n{}\nKEY\nKEY\nnew\n',
    )
  },
)

/** At one denied name after another, a file and a dangling link change places. */
const SWAPPER = `
import ctypes, os, sys, time
call = ctypes.CDLL(None).renameat2
end = time.time() + float(sys.argv[2])
for k in range(400):
    if time.time() > end: break
    name, other = (".env%d" % k).encode(), ("link%d" % k).encode()
    open(name, "w").close(); os.symlink(sys.argv[1], other)
    while time.time() < end and call(-100, name, -100, other, 2) == 0: time.sleep(0.002)
`

late(
  'P2 a sandbox that swaps denied names for links makes no file on the host when another one starts',
  async ({ project, start }) => {
    const victim = join(project.base, 'home/victim')
    project.host(`mkdir ${victim}`)
    const first = await start()
    writeFileSync(join(project.workspace, 'swap.py'), SWAPPER)
    const swapping = first.inside(`python3 swap.py /oldroot${victim}/planted 3; echo done`, 60_000)
    let worked = 0
    for (let n = 0; n < 8; n++) {
      const child = project.spawn([PEN, 'run', ...project.launcher.flags, '--', 'true'])
      const { code } = await new LateRun(child).end()
      if (code === 0) worked++
    }
    expect((await swapping).said).toContain('done')
    expect(readdirSync(victim)).toEqual([])
    expect(worked).toBeGreaterThan(0)
  },
  { once: 'bubblewrap alone makes mount points by name' },
)
