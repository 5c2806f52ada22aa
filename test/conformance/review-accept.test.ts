/** `pen diff`, `pen accept` and `pen discard` after runs with `--review`. */
import { expect } from 'bun:test'
import { existsSync, lstatSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { conformance, type Options } from './conformance.ts'
import { PEN } from './launcher.ts'
import { stateDir } from './pen-command.ts'

const REVIEW = { flags: ['--review'] }
const HERE: Options = { needs: 'hostKernel' }
const ONCE: Options = { ...HERE, once: 'a layer is the same on every backend' }

/** Its exit code is the last line. */
const pen = (box: Box, args: string): string[] =>
  box.host(`'${PEN}' ${args} 2>&1 || code=$?; echo \${code-0}`).trimEnd().split('\n')
const text = (box: Box, name: string): string => readFileSync(join(box.project, name), 'utf8')

conformance(
  'P23 accept leaves what a run without review would have left, with its commits and the right owner',
  async box => {
    box.host(
      'git init -q -b main; git config user.name u; git config user.email u@example.com; echo one > a; echo x > gone; git add .; git commit -qm one',
    )
    const ran = await box.sh(
      `git config user.name u; git config user.email u@example.com; echo two >> a; git rm -q gone; mkdir d; echo new > d/new
      git add .; git commit -qm two; echo three > untracked; sleep 0.7`,
      REVIEW,
    )
    expect([ran.code, ran.stderr]).toEqual([0, expect.stringContaining('pen accept')])
    expect(text(box, 'a')).toBe('one\n')
    expect(pen(box, 'diff --name-only')).toEqual(['a', 'd', 'd/new', 'gone', 'untracked', '1'])
    expect(pen(box, 'diff').join('\n')).toMatch(
      /everything is accepted:\n {2}main: not on the host yet \(\w{40}\)/,
    )
    const accepted = pen(box, 'accept --yes')
    expect(accepted.at(-1)).toBe('0')
    expect([text(box, 'a'), text(box, 'd/new'), existsSync(join(box.project, 'gone'))]).toEqual([
      'one\ntwo\n',
      'new\n',
      false,
    ])
    expect(box.host('git log --format=%s; git status --short')).toBe('two\none\n?? untracked\n')
    expect(lstatSync(join(box.project, 'd/new')).uid).toBe(box.launcher.who.uid)
    // Everything is accepted, so the layer is gone, and so is what kept its commits.
    expect(box.host('git for-each-ref refs/pen')).toBe('')
    expect(existsSync(join(stateDir(box), 'review'))).toBe(false)
    // A commit that needs consent comes after the user has seen it.
    await box.sh(
      'git config user.name u; git config user.email u@example.com; mkdir .vscode; echo {} > .vscode/tasks.json; git add .; git commit -qm tasks',
      REVIEW,
    )
    expect(pen(box, 'accept --yes .vscode/tasks.json').at(-1)).toBe('0')
    expect(pen(box, 'accept --yes').join('\n')).toContain('look at them with "pen git log", then: pen accept')
    expect(box.host('git log -1 --format=%s')).toBe('two\n')
    expect(pen(box, 'git log').join('\n')).toContain('.vscode/tasks.json')
    expect(pen(box, 'accept --yes').at(-1)).toBe('0')
    expect(box.host('git log -1 --format=%s')).toBe('tasks\n')
  },
  HERE,
)

conformance(
  'P23 protected paths are accepted only by name, edits of the user are merged or stay, and the digest is what was shown',
  async box => {
    box.host(
      'git init -q -b main; git config user.name u; git config user.email u@example.com; seq 9 > merges; echo 1 > conflicts; echo 1 > removed; echo 1 > mode; git add .; git commit -qm one',
    )
    await box.sh(
      'sed -i s/2/two/ merges; echo inside > conflicts; echo inside > removed; chmod 755 mode; mkdir .vscode; echo {} > .vscode/tasks.json; mkfifo pipe; ln -s /etc/passwd out; echo x > draft',
      REVIEW,
    )
    box.host('sed -i s/8/eight/ merges; echo outside > conflicts; rm removed; echo 2 >> mode')
    expect(pen(box, 'discard --yes draft').at(-1)).toBe('0')
    const shown = pen(box, 'diff')
    expect(shown).toContain('  + out  (to /etc/passwd; the link leads out of the project)')
    const digest = shown.find(line => line.startsWith('sha256:')) ?? ''
    box.host('echo again >> conflicts')
    expect(pen(box, `accept --yes --expect ${digest}`).join('\n')).toContain('not those of this digest')
    expect(pen(box, 'accept').join('\n')).toContain('fix: pen diff, then: pen accept --yes --expect')
    expect(pen(box, 'accept --yes').at(-1)).toBe('1')
    expect(text(box, 'merges')).toBe('1\ntwo\n3\n4\n5\n6\n7\neight\n9\n')
    expect(text(box, 'conflicts')).toBe('outside\nagain\n')
    expect([text(box, 'mode'), lstatSync(join(box.project, 'mode')).mode & 0o777]).toEqual(['1\n2\n', 0o755])
    expect(existsSync(join(box.project, 'removed'))).toBe(false)
    expect(pen(box, 'accept --yes --overwrite removed').at(-1)).toBe('0')
    expect(text(box, 'removed')).toBe('inside\n')
    expect([existsSync(join(box.project, '.vscode')), existsSync(join(box.project, 'pipe'))]).toEqual([
      false,
      false,
    ])
    const beside = box.start(['sh', '-c', 'echo runs; until [ -e stop ]; do sleep 0.1; done'], { flags: [] })
    await beside.printed('runs')
    expect(pen(box, 'accept --yes .vscode/tasks.json').join('\n')).toContain(
      'while no sandbox of the project runs',
    )
    box.file('stop', '')
    await beside.ended
    expect(pen(box, 'accept --yes .vscode/tasks.json').at(-1)).toBe('0')
    expect(text(box, '.vscode/tasks.json')).toBe('{}\n')
    expect(existsSync(join(box.project, 'draft'))).toBe(false)
    expect(pen(box, 'diff --name-only')).toEqual(['conflicts', 'pipe', '1'])
    expect(pen(box, 'accept --yes --overwrite').at(-1)).toBe('2')
    expect(text(box, 'conflicts')).toBe('outside\nagain\n')
    expect(pen(box, 'accept --yes --overwrite conflicts').at(-1)).toBe('0')
    expect(text(box, 'conflicts')).toBe('inside\n')
    expect(pen(box, 'accept --yes').at(-1)).toBe('1')
    expect(pen(box, 'diff').join('\n')).toContain('no review layer')
  },
  { ...ONCE, users: 'ordinary' },
)

conformance(
  'P23 what git tracks is always listed, ignored trees are one line, and accept --commit leaves them out',
  async box => {
    // The project is a linked worktree, whose HEAD and index are its own.
    box.host(
      `git init -q -b main ../main; cd ../main; git config user.name u; git config user.email u@example.com; git commit -q --allow-empty -m zero
      git worktree add -q ../project -b topic; git commit -q --allow-empty -m main; cd ../project; mkdir sub; echo 1 > a; echo x > gone; echo kept > kept
      mkdir target; for i in $(seq 12); do echo $i > target/$i; done; printf '/target/\nbuilt/\n' > .gitignore; git add -f .; git commit -qm one`,
    )
    await box.sh(
      `echo 2 > a; rm gone; echo "#!/bin/sh" > run; chmod +x run; ln -s a link; for i in $(seq 2 12); do echo new > target/$i; done; rm target/1 kept
      mkdir -p sub/built node_modules; for i in $(seq 12); do echo $i > sub/built/$i; echo $i > node_modules/$i; echo h$i > hide$i; done; echo kept > node_modules/kept; echo odd > ':!built'; echo '/hide*' >> .gitignore`,
      REVIEW,
    )
    const shown = pen(box, 'diff --stat').join('\n')
    // Where the sandbox put its content into a folded tree, too.
    for (const line of ['+ :!built', '- kept', '- target/1', '~ target/12', '+ hide1', '+ hide12'])
      expect(shown).toContain(line)
    expect(shown).toMatch(/generated:\n {2}node_modules\/ {2}14 added.*\n {2}sub\/built\/ {2}13 added/)
    // Without git's answer everything is listed, and nothing is committed.
    box.host('mkdir odd; mkfifo odd/.gitignore')
    await box.sh('echo x > odd/x', REVIEW)
    expect(pen(box, 'diff --stat').join('\n')).toContain('+ sub/built/12')
    expect(pen(box, 'accept --yes --commit m').join('\n')).toContain('odd/.gitignore is a pipe')
    box.host('rm -r odd')
    const committed = pen(
      box,
      'accept --yes --commit "a change" --branch changes a gone run link sub target sub/built/7',
    )
    expect(committed.slice(-2)).toEqual([
      'left out: 11 that git ignores; name a path to commit it as well',
      '0',
    ])
    expect(
      box.host(
        'git log --format="%an %s" changes; git ls-tree -r changes | grep -v target; git ls-tree -r --name-only changes target | wc -l; git status --short',
      ),
    ).toMatch(
      /^u a change\nu one\nu zero\n100644 blob \w+\t.gitignore\n100644 blob \w+\ta\n100644 blob \w+\tkept\n120000 blob \w+\tlink\n100755 blob \w+\trun\n100644 blob \w+\tsub\/built\/7\n11\n$/,
    )
    expect(pen(box, 'discard --yes').at(-1)).toBe('0')
    expect(box.host('ls; cat a')).toBe('a\ngone\nkept\nsub\ntarget\n1\n')
  },
  { ...ONCE, users: 'ordinary' },
)
