import { expect } from 'bun:test'
import { existsSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { conformance } from './conformance.ts'

/** A dotfiles project: links to single files, to a directory, to a link in the project, and a dangling one. */
const DOTFILES = `
  cd ..; mkdir -p .config .local/bin .ssh .claude .config/autostart project/fish project/zsh project/v1 project/bin
  for f in bashrc fish/config.fish zsh/env v1/ssh bin/tool claude.json; do echo "# mine" > project/$f; done
  chmod +x project/bin/tool; echo 'PATH=$HOME/.local/bin:$PATH; . ~/.bashrc' > .profile; ln -s v1 project/current
  ln -s project/bashrc .bashrc; ln -s project/fish/config.fish project/fish-link; ln -s ../project/fish .config/fish
  ln -s project/zsh/env .zshenv; ln -s project/zshrc .zshrc; ln -s project/bash_profile .bash_profile
  ln -s ../project/current/ssh .ssh/config; ln -s ../../project/bin/tool .local/bin/tool
  ln -s ../project/claude.json .claude/settings.json; ln -s ../../project/run.desktop .config/autostart/run.desktop`

const PLACES =
  'bashrc bash_profile fish/config.fish fish/conf.d/x.fish zsh/env zshrc v1/ssh current/ssh bin/tool claude.json run.desktop'

const HOSTILE = `
  for f in ${PLACES} note zsh/note bin/other; do mkdir -p $(dirname $f) 2>/dev/null; rm -f $f; echo 'echo PLANTED' > $f; done
  mv fish f2; mv zsh z2; mv v1 v2; rm current; ln -s bin current; ln -sf note bashrc; sleep 0.4; echo ran`

/** Real shells of the user on the host, as a login starts them. */
const logins = (box: Box): string =>
  box.host(`export TERM=dumb; bash -lic 'tool; echo bash' </dev/null 2>&1; zsh -lic 'echo zsh' </dev/null 2>&1
    fish -lc 'echo fish' </dev/null 2>&1; cat ../.ssh/config ../.claude/settings.json; ls ../.config/autostart/ -L 2>/dev/null || true`)

conformance(
  'P3 a login after a hostile run finds no planted code where the home links to the project',
  async box => {
    box.host(DOTFILES)
    const { stdout } = await box.sh(HOSTILE)
    expect(stdout).toBe('ran\n')
    const seen = logins(box)
    expect(seen).not.toContain('PLANTED')
    for (const shell of ['bash', 'zsh', 'fish']) expect(seen).toContain(shell)
    expect(readlinkSync(join(box.project, 'current'))).toBe('v1')
    for (const absent of ['bash_profile', 'zshrc', 'run.desktop', 'fish/conf.d'])
      expect([absent, existsSync(join(box.project, absent))]).toEqual([absent, false])
    for (const note of ['note', 'zsh/note', 'bin/other'])
      expect([note, readFileSync(join(box.project, note), 'utf8')]).toEqual([note, 'echo PLANTED\n'])
    // The shells do read these files: the user's own lines run.
    box.file('bashrc', 'echo MINE\n')
    expect(logins(box)).toContain('MINE')
  },
)

conformance(
  'P3 a home that moves its settings by a variable or PATH is followed; other directories are not',
  async box => {
    box.host(
      'mkdir -p ../elsewhere conf z tools free node_modules/.bin; ln -s ../project/tools ../elsewhere/bin',
    )
    const env = {
      CLAUDE_CONFIG_DIR: join(box.project, 'conf'),
      ZDOTDIR: join(box.project, 'z'),
      PATH: `${join(box.home, 'elsewhere/bin')}:${join(box.project, 'node_modules/.bin')}:/usr/bin:/bin`,
    }
    const script =
      'for f in conf/hooks/x z/.zshrc z/x tools/ls free/ls node_modules/.bin/x; do mkdir -p $(dirname $f); echo x > $f; done; sleep 0.4'
    await box.sh(script, { env })
    const there = (path: string) => existsSync(join(box.project, path))
    expect(['conf/hooks', 'z/.zshrc', 'tools/ls'].filter(there)).toEqual([])
    expect(['z/x', 'free/ls', 'node_modules/.bin/x'].filter(path => !there(path))).toEqual([])
  },
  { users: 'ordinary', once: 'the home is surveyed before there is a backend' },
)

conformance(
  'P3 a file that the home links to is opened by its own name alone, also in a project inside the home',
  async box => {
    box.host(
      'echo a > bashrc; echo a > zshrc; ln -s project/bashrc ../.bashrc; ln -s project/zshrc ../.zshrc',
    )
    const write = 'echo b > bashrc; echo b > zshrc; echo b > note'
    const first = await box.sh(write, { flags: ['--write', './bashrc'] })
    const texts = () => ['bashrc', 'zshrc', 'note'].map(name => readFileSync(join(box.project, name), 'utf8'))
    expect(texts()).toEqual(['b\n', 'a\n', 'b\n'])
    expect(first.stderr).toContain('read-only inside: ./zshrc (~/.zshrc)')
    box.host('rm ../.bashrc ../.zshrc; mkdir -p ../.config; ln -s ../project ../.config/nvim')
    await box.sh('echo c > bashrc; echo c > note')
    expect(texts()).toEqual(['b\n', 'a\n', 'b\n'])
    await box.sh('echo c > bashrc; echo c > note', { flags: ['--write', '.'] })
    expect(texts()).toEqual(['c\n', 'a\n', 'c\n'])
  },
  { users: 'ordinary', once: 'the home is surveyed before there is a backend' },
)
