import { expect } from 'bun:test'
import { conformance } from './conformance.ts'

const SETTINGS = 'git config user.name A; git config user.email a@example.com'

/** Each line must succeed. The end of the script says so. */
const all = (script: string): string => `set -e; exec 2>&1; ${script}; echo done`

conformance(
  'P24 add -p, amend, rebase -i, stash, merge, bisect, notes and gc work, and the host has the result',
  async box => {
    box.host(`git init -q -b main .; ${SETTINGS}; seq 1 30 >file; git add .; git commit -qm base`)
    const { stdout } = await box.sh(
      all(`
      sed -i 's/^1$/one/; s/^30$/thirty/' file; printf 'y\\nn\\n' | git add -p >/dev/null; git commit -qm half
      git commit -q --amend -m first; git diff --stat | grep -q file; git stash -q; git stash pop -q; git commit -qam second
      echo x >extra; git add extra; git commit -qm extra
      GIT_SEQUENCE_EDITOR='sed -i "s/^pick \\(.*\\) second/reword \\1 second/"' GIT_EDITOR='sed -i s/second/reworded/' git rebase -q -i main~3
      git switch -q -c topic main~1; echo topic >extra; git add extra; git commit -qm topic; git switch -q main
      if git merge -q topic; then exit 1; fi; echo both >extra; git add extra; git commit -qm merged
      git bisect start HEAD HEAD~3 >/dev/null; git bisect run sh -c '! grep -q thirty file' | grep -q 'is the first bad commit'; git bisect reset >/dev/null
      git notes add -m noted; git stash list | wc -l; git gc -q; git fsck --strict`),
    )
    expect(stdout).toEndWith('done\n')
    expect(
      box.host('git log --first-parent --format=%s; git notes show; git status --short; git branch'),
    ).toBe('merged\nextra\nreworded\nfirst\nbase\nnoted\n* main\n  topic\n')
    // A commit that was amended may have come over before.
    expect(box.host('git fsck --strict --no-dangling; cat extra')).toBe('both\n')
  },
)

conformance(
  'P24 worktrees, sparse checkouts, hooks and settings work inside; commits cross, hooks and settings do not',
  async box => {
    box.host(`git init -q -b main .; ${SETTINGS}; mkdir a b; touch a/x b/y; git add .; git commit -qm base`)
    const { stdout } = await box.sh(
      all(`
      git worktree add -q -b side tree; cd tree; echo s >s; git add s; git commit -qm side; cd ..; git worktree remove tree
      printf '#!/bin/sh\\necho "from a hook" >>"$1"\\n' >.git/hooks/commit-msg; chmod +x .git/hooks/commit-msg
      git sparse-checkout set a; test ! -e b/y; echo 1 >a/x; git commit -qam sparse; git sparse-checkout disable; test -e b/y
      git log -1 --format=%B`),
    )
    expect(stdout).toBe('sparse\nfrom a hook\n\ndone\n')
    expect(box.host('git log --all --format=%s; git status --short; ls b')).toBe(
      'sparse from a hook\nside\nbase\ny\n',
    )
    expect(box.host('ls .git/hooks | sed /sample/d; git config core.sparseCheckout || echo unset')).toBe(
      'unset\n',
    )
  },
  { users: 'ordinary', once: 'git is the same in an image' },
)

conformance(
  'P24 a commit that is signed inside with an SSH key or by gpg has a good signature on the host',
  async box => {
    box.host(`git init -q -b main .; ${SETTINGS}; git commit -q --allow-empty -m base`)
    const { stdout } = await box.sh(
      all(`
      ssh-keygen -q -t ed25519 -N '' -f /tmp/key; printf 'a@example.com %s\\n' "$(cat /tmp/key.pub)" >signers
      git -c gpg.format=ssh -c user.signingKey=/tmp/key.pub commit -q --allow-empty -S -m ssh
      mkdir -m 700 /tmp/gpg; export GNUPGHOME=/tmp/gpg
      gpg --batch -q --passphrase '' --quick-gen-key a@example.com ed25519 sign 1d
      git -c user.signingKey=a@example.com commit -q --allow-empty -S -m gpg; gpg --armor --export >public`),
    )
    expect(stdout).toEndWith('done\n')
    expect(
      box.host(`git -c gpg.ssh.allowedSignersFile=$PWD/signers log -1 --format='%s %G?' HEAD~1
        mkdir -m 700 ../gpg; export GNUPGHOME=$PWD/../gpg; gpg -q --batch --import public 2>/dev/null; git log -1 --format='%s %G?'
        gpgconf --kill all`),
    ).toMatch(/^ssh G\ngpg [GU]\n$/)
  },
  { once: 'an image need not have gpg and ssh-keygen', users: 'ordinary' },
)

conformance(
  'P24 a git-lfs file that is committed inside checks out on the host, and the other way round',
  async box => {
    box.host(
      `git init -q -b main .; ${SETTINGS}; git lfs install --local >/dev/null; git lfs track '*.bin' >/dev/null; head -c 100000 /dev/zero >one.bin; git add .; git commit -qm one`,
    )
    const { stdout } = await box.sh(
      all(
        `sha256sum <one.bin; rm one.bin; git checkout -q one.bin; sha256sum <one.bin; head -c 200000 /dev/urandom >two.bin; git add .; git commit -qm two; git lfs fsck; sha256sum <two.bin`,
      ),
    )
    const lines = stdout.split('\n')
    expect(lines[0]).toBe(lines[1] ?? '')
    const sum = lines.at(-3) ?? ''
    expect(
      box.host('git lfs fsck; rm *.bin; git checkout -q .; sha256sum <two.bin; git status --short'),
    ).toBe(`Git LFS fsck OK\n${sum}\n`)
  },
  { once: 'an image need not have git-lfs', users: 'ordinary' },
)
