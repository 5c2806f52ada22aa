/**
 * Files that logins, shells, desktops or remote logins run or trust, in addition to PROTECTED_PLACES. A sandbox that can write
 * one runs code on the host. Compared in lower case, in every directory.
 */
const SHELLS = 'a shell runs it when it starts'
const DESKTOP = 'a login or a desktop starts it'
const PROGRAMS = 'shells look up commands there'
const LOGINS = 'it decides who may log in, or what a login runs'

const because = (why: string, ...paths: readonly string[]) => paths.map(path => [path, why] as const)

export const START_FILES: ReadonlyMap<string, string> = new Map([
  ...because(
    SHELLS,
    ...['.profile', '.login', '.logout', '.shrc', '.kshrc', '.mkshrc', '.cshrc', '.tcshrc', '.inputrc'],
    ...['.bashrc', '.bash_profile', '.bash_login', '.bash_logout', '.bash_aliases', '.bash_completion'],
    ...[
      '.zshrc',
      '.zshenv',
      '.zprofile',
      '.zlogin',
      '.zlogout',
      '.config/fish',
      '.config/zsh',
      '.config/nushell',
    ],
  ),
  ...because(
    DESKTOP,
    ...['.xinitrc', '.xsession', '.xsessionrc', '.xprofile', '.xserverrc', '.pam_environment'],
    ...['.config/autostart', '.config/systemd', '.config/environment.d', '.config/plasma-workspace'],
    ...['.config/i3', '.config/sway', '.config/hypr', '.local/share/systemd', '.local/share/applications'],
    ...['.local/share/dbus-1', 'library/launchagents', 'library/launchdaemons', '.crontab'],
  ),
  ...because(PROGRAMS, '.local/bin', '.cargo/bin', '.npm-global', '.bun/bin', '.deno/bin', '.nvm', '.pyenv'),
  ...because(LOGINS, '.ssh', '.rhosts', '.shosts', '.forward', '.gnupg'),
  ...because('git runs programs that it names', '.gitconfig', '.config/git'),
])
