/**
 * Files in a home that the user's shells, logins, desktop, editors and agents run or obey, as a tree of names. If one of them
 * is a link into the project, its target is protected: see `config/home/home-links.ts`. `START_FILES` lists those that
 * `pen grant` refuses.
 */
export interface HomePlace {
  /** The user's programs run or obey this file, or everything in this directory. */
  readonly run?: true
  /** The same, for direct entries only. A project deeper in this directory is not affected. */
  readonly shallow?: true
  /** Entries of this directory may be links themselves. */
  readonly list?: true
  /** A small settings directory. It is searched when the home has links into the project. */
  readonly deep?: true
  readonly in?: HomeTree
}

export type HomeTree = Readonly<Record<string, HomePlace>>

const RUN: HomePlace = { run: true }
const LIST: HomePlace = { run: true, list: true }
const DEEP: HomePlace = { run: true, list: true, deep: true }
const PROGRAMS: HomePlace = { run: true, shallow: true }
const LISTED_PROGRAMS: HomePlace = { ...PROGRAMS, list: true }

const all = (place: HomePlace, names: string): HomeTree =>
  Object.fromEntries(names.split(' ').map(name => [name, place]))
/** Agents keep sessions, caches and checkouts beside their settings, so only the settings are listed. */
const agent = (files: string, directories: string): HomePlace => ({
  ...PROGRAMS,
  in: { ...all(RUN, files), ...all(LIST, directories) },
})

const CONFIG: HomeTree = {
  ...all(
    DEEP,
    'autostart environment.d git zsh nushell nvim vim emacs doom helix i3 sway hypr bash shell direnv',
  ),
  ...all(DEEP, 'mise tmux kitty alacritty wezterm ghostty kak micro jj hg gdb pip opencode plasma-workspace'),
  ...all(RUN, 'starship.toml awesome bspwm sxhkd river niri polybar waybar openbox qtile xmonad terminator'),
  ...all(RUN, 'upstart nano lf ranger yazi goose crush amp zed environment'),
  ...all(RUN, 'user-dirs.dirs sheldon powershell atuin zellij gh lazygit'),
  fish: { ...DEEP, in: all(LIST, 'conf.d functions completions') },
  systemd: { ...DEEP, in: { user: LIST } },
  Code: { in: { User: LIST } },
  VSCodium: { in: { User: LIST } },
  Cursor: { in: { User: LIST } },
}

/** Parts of the home that environment variables can move. */
export const HOME_PARTS = {
  config: { in: CONFIG },
  data: {
    in: {
      ...all(RUN, 'applications bash-completion zinit sheldon'),
      'dbus-1': LIST,
      systemd: { ...RUN, in: { user: LIST } },
      fish: { in: all(LIST, 'vendor_conf.d vendor_functions.d vendor_completions.d') },
    },
  },
  claude: agent(
    'settings.json settings.local.json CLAUDE.md keybindings.json',
    'hooks commands agents skills plugins output-styles',
  ),
  codex: agent('config.toml hooks.json AGENTS.md', 'prompts skills rules hooks'),
} satisfies HomeTree

export const HOME_TREE: HomeTree = {
  ...all(
    RUN,
    '.profile .login .logout .shrc .kshrc .mkshrc .cshrc .tcshrc .inputrc .bashrc .bash_profile .bash_login',
  ),
  ...all(
    RUN,
    '.bash_logout .bash_aliases .bash_completion .bash_prompt .zshrc .zshenv .zprofile .zlogin .zlogout',
  ),
  ...all(
    RUN,
    '.zsh_aliases .p10k.zsh .aliases .functions .exports .path .extra .xinitrc .xsession .xsessionrc',
  ),
  ...all(
    RUN,
    '.xprofile .xserverrc .Xresources .xbindkeysrc .pam_environment .crontab .rhosts .shosts .forward',
  ),
  ...all(RUN, '.gnupg .gitconfig .gitattributes .githooks .hgrc .envrc .tool-versions .tmux.conf .screenrc'),
  ...all(RUN, '.wezterm.lua .hammerspoon .xmonad .vimrc .gvimrc .ideavimrc .exrc .nvimrc .emacs .emacs.el'),
  ...all(RUN, '.spacemacs .nanorc .gdbinit .lldbinit .pythonrc .pythonrc.py .pdbrc .irbrc .pryrc .Rprofile'),
  ...all(
    RUN,
    '.ghci .psqlrc .sqliterc .npmrc .yarnrc .yarnrc.yml .bunfig.toml .pip .m2 .mailcap .lessfilter',
  ),
  ...all(
    RUN,
    '.claude.json .aider.conf.yml .mcp.json .nvm .pyenv .npm-global .rbenv .rvm .asdf .asdfrc .sdkman',
  ),
  // Frameworks and plugins of shells, and files that installers add to a start file.
  ...all(
    RUN,
    '.oh-my-bash .bash_it .bash_functions .zprezto .zpreztorc .zim .zimrc .zinit .antigen .antidote',
  ),
  ...all(
    RUN,
    '.zplug .zsh_plugins.txt .zsh_plugins.zsh .fzf .fzf.bash .fzf.zsh .selected_editor .ipython .wgetrc',
  ),
  ...all(
    DEEP,
    '.ssh .bashrc.d .bash.d .bash_completion.d .zshrc.d .zsh .zfunc .profile.d .tmux .vim .emacs.d .doom.d',
  ),
  ...all(LISTED_PROGRAMS, 'bin .bin'),
  '.config': HOME_PARTS.config,
  '.local': {
    in: {
      bin: LISTED_PROGRAMS,
      share: HOME_PARTS.data,
    },
  },
  '.claude': HOME_PARTS.claude,
  '.codex': HOME_PARTS.codex,
  '.gemini': agent('settings.json GEMINI.md .env', 'commands extensions hooks'),
  '.qwen': agent('settings.json QWEN.md', 'commands extensions'),
  '.cursor': agent('mcp.json hooks.json cli-config.json', 'commands rules'),
  '.continue': agent('config.yaml config.json config.ts', 'rules'),
  '.factory': agent('mcp.json settings.json', 'commands droids'),
  '.copilot': agent('config.json mcp-config.json', 'agents'),
  '.agents': agent('AGENTS.md', 'skills'),
  '.oh-my-zsh': { ...RUN, in: { custom: { ...LIST, in: { plugins: LIST } } } },
  '.cargo': { in: { bin: PROGRAMS, ...all(RUN, 'env config config.toml') } },
  '.ghcup': { in: { bin: PROGRAMS, env: RUN } },
  '.opam': { in: { 'opam-init': RUN } },
  '.bun': { in: { bin: PROGRAMS } },
  '.deno': { in: { bin: PROGRAMS } },
  '.gradle': { in: { 'init.d': LIST } },
  '.docker': { in: { 'config.json': RUN, 'cli-plugins': LIST } },
  '.kube': { in: { config: RUN } },
  '.aws': { in: { config: RUN } },
  Library: { in: { LaunchAgents: LIST } },
}
