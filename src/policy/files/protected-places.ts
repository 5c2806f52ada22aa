/**
 * What every profile keeps from being written: files that make the host run something without
 * anyone asking for the project's code to run (a git command, `cd`, opening an editor, starting an agent).
 * Files that run when someone builds or tests the project are the agent's work and stay writable: see RUN_LATER.
 * The reasons are printed by `pen policy explain`; `docs/protected-paths.md` has the longer story.
 */

export interface ProtectedPlace {
  /** Relative to the workspace root; a directory protects all that is in it. */
  readonly path: string
  readonly why: string
}

const GIT_CONFIG = 'git runs programs that its configuration names, on a plain git status'
const OTHER_VCS =
  'a version control tool takes commands from it, or from the directory that it names, on a plain status'
const HOOK_SETUP = 'names commands that git hooks run on the next commit'
const SHELL_ENTRY = 'runs when a shell enters the directory'
const EDITOR = 'an editor runs commands from it when the project is opened'
const AGENT = 'an agent on the host takes permissions, hooks and tool servers from it'
const PACKAGE_TOOL = 'redirects a package tool, or makes it load code, before any of the project is run'
const START_FILE = 'runs when an interpreter or debugger starts in the directory'
const PEN = "pen's own settings for the project"

const because = (why: string, ...paths: readonly string[]): readonly ProtectedPlace[] =>
  paths.map(path => ({ path, why }))

export const PROTECTED_PLACES: readonly ProtectedPlace[] = [
  ...because('git runs the hooks in it', '.git/hooks', '.githooks', '.husky'),
  ...because(GIT_CONFIG, '.git/config', '.git/config.worktree'),
  ...because('sends git to another directory for its configuration and hooks', '.git/commondir'),
  ...because(
    OTHER_VCS,
    '.hg/hgrc',
    '.hg/hgrc-not-shared',
    '.hg/sharedpath',
    '.sl/config',
    '.sl/sharedpath',
    '.jj/repo/config.toml',
    '.jj/workspace-config.toml',
  ),
  ...because(
    HOOK_SETUP,
    '.pre-commit-config.yaml',
    '.pre-commit-config.yml',
    'prek.toml',
    'hk.pkl',
    'hk.local.pkl',
    '.config/hk.pkl',
    '.config/hk.local.pkl',
    ...['lefthook', '.lefthook', 'lefthook-local', '.lefthook-local', '.config/lefthook'].flatMap(name =>
      ['yml', 'yaml', 'toml', 'json'].map(ending => `${name}.${ending}`),
    ),
    '.overcommit.yml',
  ),
  ...because(
    SHELL_ENTRY,
    '.envrc',
    '.direnv',
    'mise.toml',
    '.mise.toml',
    'mise.local.toml',
    '.mise.local.toml',
    '.mise',
    '.config/mise',
    '.config/mise.toml',
    '.config/mise.local.toml',
    'mise/config.toml',
    'mise/config.local.toml',
    'mise/conf.d',
    '.miserc.toml',
    '.config/miserc.toml',
    '.shadowenv.d',
    '.autoenv.zsh',
    '.autoenv_leave.zsh',
  ),
  ...because(
    EDITOR,
    '.vscode',
    '.idea',
    '.fleet',
    '.zed',
    '.helix',
    '.nova',
    '.vim',
    '.vimrc',
    '.exrc',
    '.nvimrc',
    '.nvim.lua',
    '.lvimrc',
    '.lazy.lua',
    '.neoconf.json',
    '.ycm_extra_conf.py',
    '.dir-locals.el',
    '.dir-locals-2.el',
    '.devcontainer',
    '.devcontainer.json',
    '.theia',
    '.vs',
    '.externalToolBuilders',
  ),
  ...because(
    AGENT,
    '.mcp.json',
    '.claude/settings.json',
    '.claude/settings.local.json',
    '.claude/hooks',
    '.claude/commands',
    '.claude/agents',
    '.claude/skills',
    '.claude/plugins',
    '.claude/workflows',
    '.claude/launch.json',
    '.agents/plugins',
    '.agents/skills',
    '.agents/agents',
    '.agents/commands',
    '.agents/hooks',
    '.cursor',
    '.codex',
    '.gemini',
    '.qwen',
    '.windsurf',
    '.continue',
    '.roo',
    '.factory',
    '.opencode',
    'opencode.json',
    'opencode.jsonc',
    '.crush.json',
    'crush.json',
    '.kiro/hooks',
    '.kiro/settings',
    '.kiro/agents',
    '.cline',
    '.clinerules/hooks',
    '.amazonq',
    '.amp',
    '.augment',
    '.junie',
    '.kilocode',
    '.openhands',
    '.pi',
    '.trae',
    '.grok',
    '.vibe',
    '.iflow',
    '.qoder',
    '.codebuddy',
    '.aider.conf.yml',
    '.github/hooks',
    '.github/copilot',
    '.github/mcp.json',
    '.github/agents',
    '.github/extensions',
    '.github/skills',
  ),
  ...because(
    PACKAGE_TOOL,
    '.npmrc',
    '.yarnrc',
    '.yarnrc.yml',
    '.yarn/releases',
    '.yarn/plugins',
    '.pnpmfile.cjs',
    '.pnpmfile.mjs',
    '.cargo/config.toml',
    '.cargo/config',
  ),
  ...because(
    START_FILE,
    '.gdbinit',
    '.lldbinit',
    '.pdbrc',
    '.rdbgrc',
    '.rdbgrc.rb',
    '.Rprofile',
    '.Renviron',
    '.RData',
    '.irbrc',
    '.pryrc',
    '.ghci',
    '.iex.exs',
    '.ocamlinit',
    '.octaverc',
  ),
  ...because(PEN, '.pen', 'agent-permissions.json'),
]

/**
 * Denied in every profile, inside the workspace. The home directory, with its keys and keychains, needs no glob:
 * a sandbox has a home of its own.
 */
export const DENIED_GLOBS: readonly string[] = ['.env*']

/**
 * The agent's to edit, yet run by the host once someone builds, tests or pushes: told at the end of a run when they changed.
 */
export const RUN_LATER: readonly string[] = [
  // First: of many only the first are shown.
  ...['.git/rebase-merge/git-rebase-todo', '.gitattributes', '.gitmodules'],
  ...['package.json', 'pnpm-workspace.yaml', 'binding.gyp', 'bunfig.toml', 'deno.json', 'deno.jsonc'],
  ...['Makefile', 'makefile', 'GNUmakefile', 'CMakeLists.txt', 'meson.build'],
  ...['justfile', 'Justfile', '.justfile', 'Taskfile.yml', 'Taskfile.yaml', 'Tiltfile', 'Procfile', '.run'],
  ...['conftest.py', 'pytest.ini', 'sitecustomize.py', 'noxfile.py', 'tox.ini'],
  ...['setup.py', 'setup.cfg', 'pyproject.toml', 'uv.toml'],
  ...['build.rs', 'rust-toolchain', 'rust-toolchain.toml', 'build.zig', 'Package.swift'],
  ...['build.gradle', 'build.gradle.kts', 'settings.gradle', 'settings.gradle.kts', 'gradlew'],
  ...['gradle/wrapper/gradle-wrapper.jar', 'gradle/wrapper/gradle-wrapper.properties'],
  ...['mvnw', '.mvn', 'pom.xml', 'build.sbt', '.bsp'],
  ...['Rakefile', 'Gemfile', '.bundle', 'mix.exs', 'composer.json'],
  ...['nuget.config', 'NuGet.Config', 'Directory.Build.props', 'Directory.Build.targets'],
  ...['.bazelrc', '.bazelversion', '.bazeliskrc', 'MODULE.bazel', 'tools/bazel'],
  ...['flake.nix', 'devenv.nix', 'devbox.json', '.tool-versions', '.ripgreprc'],
  ...['.github/workflows', '.github/actions', '.gitlab-ci.yml', '.circleci', 'Jenkinsfile'],
  ...[
    'Dockerfile',
    'Containerfile',
    'compose.yaml',
    'compose.yml',
    'docker-compose.yml',
    'docker-compose.yaml',
  ],
]
