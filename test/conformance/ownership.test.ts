import { expect } from 'bun:test'
import { chmodSync, lstatSync, mkdirSync, readlinkSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { conformance, onTheHost } from './conformance.ts'
import { isRoot, ordinary } from './launcher.ts'

const IDENTITY =
  'git config --global user.email a@example.com; git config --global user.name A; git config --global init.defaultBranch main; git config --global protocol.file.allow always'

conformance('P5 what the sandbox makes belongs to the user, with ordinary modes', async box => {
  const { uid, gid } = box.launcher.who
  await box.sh(
    'umask 022; echo x > file; mkdir -p dir/sub; ln -s file link; mkfifo pipe; cp /bin/true program; install -m 600 file private',
  )
  for (const name of ['file', 'dir', 'dir/sub', 'link', 'pipe', 'program', 'private']) {
    const stat = lstatSync(join(box.project, name))
    expect([name, stat.uid, stat.gid, stat.mode & 0o7000]).toEqual([name, uid, gid, 0])
  }
  expect(
    box.host(
      './program; cat file private; echo more >> file; mv dir/sub dir/renamed; rm -r dir file private pipe; ls',
    ),
  ).toBe('x\nx\nlink\nprogram\n')
})

conformance('P5 no setuid or setgid bit reaches the host by any call; other mode bits do', async box => {
  const { stdout } = await box.run([
    '/usr/bin/python3',
    '-c',
    `
import os, shutil, tarfile, io
shutil.copy('/bin/true', 'a'); shutil.copy('/bin/true', 'ok'); os.mkdir('d')
tries = [lambda: os.chmod('a', 0o4755), lambda: os.chmod('a', 0o2755), lambda: os.chmod('a', 0o6777), lambda: os.chmod('d', 0o2755),
  lambda: os.fchmod(os.open('a', os.O_RDWR), 0o4755), lambda: os.open('b', os.O_CREAT | os.O_WRONLY, 0o4755),
  lambda: os.mknod('c', 0o4755 | 0o100000), lambda: os.mkdir('e', 0o2755), lambda: os.chmod('a', 0o4755, dir_fd=os.open('.', 0)),
  lambda: os.setxattr('a', 'security.capability', bytes.fromhex('0100000202000000000000000000000000000000')),
  lambda: os.chown('a', 0, 0), lambda: os.mknod('dev', 0o20666, os.makedev(1, 3)), lambda: os.mknod('blk', 0o60666, os.makedev(8, 0))]
for t in tries:
    try: t()
    except OSError: pass
os.chmod('ok', 0o1751); print('done')`,
  ])
  expect(stdout).toBe('done\n')
  for (const line of box.listing(box.project)) {
    const [name = '', mode = ''] = line.split(' ')
    expect([name, Number.parseInt(mode, 8) & 0o6000]).toEqual([name, 0])
    expect([
      name,
      ['1', '4'].includes(mode.slice(0, -4)) ||
        mode.startsWith('100') ||
        mode.startsWith('40') ||
        mode.startsWith('101'),
    ]).toEqual([name, true])
  }
  expect(lstatSync(join(box.project, 'ok')).mode & 0o7777).toBe(0o1751)
  expect(box.host('getcap a 2>/dev/null || /sbin/getcap a 2>/dev/null || true')).toBe('')
})

conformance(
  'P5 git init, commit, branch, stash, rebase, clone and tag work inside, and outside afterwards',
  async box => {
    const { code, stderr } = await box.sh(`set -e; ${IDENTITY}
    git init -q .; echo 1 > f; git add f; git commit -qm one; echo 2 > f; git commit -qam two; git checkout -qb side HEAD~1; echo s > s; git add s; git commit -qm side
    git rebase -q main; git checkout -q main; git merge -q side; echo 3 > f; git stash -q; git stash pop -q; git tag v1; git clone -q . sub/copy; git -C sub/copy log --oneline; git status --short; git gc -q`)
    expect([code, code === 0 ? '' : stderr]).toEqual([0, ''])
    expect(box.host('git log --format=%s; git status --short')).toBe('side\ntwo\none\n M f\n?? sub/\n')
    expect(
      box.host(
        'git commit -qam host -c user.name=A 2>/dev/null || git -c user.name=A -c user.email=a@example.com commit -qam host; git log --format=%s -1',
      ),
    ).toBe('host\n')
  },
)

conformance(
  'P5 a commit inside has the user’s name and e-mail, and no other setting of theirs',
  async box => {
    const secret = '[alias]\n  secret = !cat\n[credential]\n  helper = store\n'
    box.file(
      join(box.home, '.gitconfig'),
      `[user]\n  name = "Ada \\"L\\" B"\n  email = ada@example.com\n${secret}`,
    )
    box.host('git init -q .')
    const by =
      'git log --format="%an <%ae>" -1; git config --get-regexp "alias|credential" || echo nothing else'
    const commit = 'git commit -q --allow-empty -m x'
    expect((await box.sh(`${commit} && ${by}; git config --global a.b c && git config a.b`)).stdout).toBe(
      'Ada "L" B <ada@example.com>\nnothing else\nc\n',
    )
    // The repository's own setting comes first, as on the host.
    box.host('git config user.name Own')
    expect((await box.sh(`${commit} && ${by}`)).stdout).toBe('Own <ada@example.com>\nnothing else\n')
    // A user can opt out.
    box.host('git config --unset user.name')
    box.file('agent-permissions.json', '{ "git": { "identity": false } }')
    const without = await box.sh(`git config user.email; ${commit}`)
    expect([without.code, without.stdout]).toEqual([128, ''])
  },
  { once: 'the settings of git are part of the plan' },
)

conformance('P5 commits work in a linked worktree and in a submodule', async box => {
  const g = 'git -c user.name=A -c user.email=a@example.com -c protocol.file.allow=always'
  box.host(`mkdir ../main ../lib; cd ../lib; git init -q .; ${g} commit -q --allow-empty -m lib
    cd ../main; git init -q .; ${g} commit -q --allow-empty -m main; ${g} submodule --quiet add ../lib lib; ${g} commit -qm sub; git worktree add -q ../tree`)
  for (const [where, subject] of [
    ['tree', 'in the worktree'],
    ['main/lib', 'in the submodule'],
    ['main', 'at the top'],
  ] as const) {
    const { code, stderr } = await box.sh(
      `${IDENTITY}; echo "${subject}" > new && git add new && git commit -qm "${subject}"`,
      { cwd: join(box.home, where) },
    )
    expect([where, code, code === 0 ? '' : stderr]).toEqual([where, 0, ''])
    expect(box.host(`git -C ../${where} log -1 --format=%s; git -C ../${where} status --short new`)).toBe(
      `${subject}\n`,
    )
  }
})

conformance('P5 git worktree add inside works within the project', async box => {
  box.host('git init -q .; git -c user.name=A -c user.email=a@example.com commit -q --allow-empty -m one')
  const { code, stderr } = await box.sh(
    `${IDENTITY}; git worktree add -q tree && cd tree && echo x > f && git add f && git commit -qm in-tree`,
  )
  expect([code, code === 0 ? '' : stderr]).toEqual([0, ''])
  expect(box.host('git log --format=%s -1 tree --')).toBe('in-tree\n')
})

conformance(
  'P5 another user’s project stays that user’s when root runs pen in it',
  async box => {
    const { uid, gid } = ordinary ?? { uid: 1, gid: 1 }
    const project = join(box.root, 'theirs')
    mkdirSync(project)
    writeFileSync(join(project, 'old'), 'old')
    box.file(join(project, 'roots'), 'root', 0o600)
    for (const path of [project, join(project, 'old')]) Bun.spawnSync(['chown', `${uid}:${gid}`, path])
    symlinkSync('elsewhere', join(project, '.envrc'))
    Bun.spawnSync(['chown', '-h', `${uid}:${gid}`, join(project, '.envrc')])
    // The link is removed with what replaced it, and restored.
    const { stdout } = await box.sh(
      'echo x > new; echo more >> old; rm .envrc; touch .envrc; cat roots; id -u',
      {
        cwd: project,
      },
    )
    expect(readlinkSync(join(project, '.envrc'))).toBe('elsewhere')
    expect(stdout).toBe(`${uid}\n`)
    for (const [name, owner] of [
      ['new', uid],
      ['old', uid],
      ['.envrc', uid],
      ['roots', 0],
    ] as const)
      expect([name, lstatSync(join(project, name)).uid]).toEqual([name, owner])
  },
  { only: ({ who }) => isRoot && who.uid === 0 },
)

onTheHost(
  'P12 no process of the sandbox is in root’s group in another user’s project',
  async box => {
    const { uid, gid } = ordinary ?? { uid: 1, gid: 1 }
    const project = join(box.root, 'theirs')
    mkdirSync(project)
    Bun.spawnSync(['chown', `${uid}:0`, project])
    chmodSync(project, 0o755)
    const groups = await box.sh('id -G; touch made', { cwd: project })
    expect(groups.stdout).toBe(`${gid}\n`)
    const made = lstatSync(join(project, 'made'))
    expect([made.uid, made.gid]).toEqual([uid, gid])
  },
  { only: ({ who }) => isRoot && who.uid === 0 },
)

conformance(
  'P5 root’s project with groups and files of others is usable, and theirs stay theirs',
  async box => {
    const { uid, gid } = ordinary ?? { uid: 1, gid: 1 }
    box.file('grouped', 'g', 0o664)
    box.file('theirs', 't', 0o600)
    box.file('readable', 'r', 0o644)
    Bun.spawnSync(['chgrp', String(gid), box.project, join(box.project, 'grouped')])
    Bun.spawnSync(['chown', String(uid), join(box.project, 'theirs'), join(box.project, 'readable')])
    chmodSync(box.project, 0o775)
    const { stdout } = await box.sh(
      'echo more >> grouped; echo x > new; cat theirs; cat readable; (echo evil >> readable) 2>/dev/null',
    )
    expect(stdout).toBe('r')
    expect(box.host('cat grouped theirs readable')).toBe('gmore\ntr')
    expect(lstatSync(join(box.project, 'new')).uid).toBe(0)
  },
  { only: ({ who }) => isRoot && who.uid === 0 },
)
