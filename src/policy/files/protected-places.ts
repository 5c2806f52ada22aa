/**
 * Files that every profile protects from writes. The host runs or obeys them without running project code: on a git
 * command, on `cd`, or when an editor or agent starts.
 * Files that run during a build or a test stay writable, because they are the agent's work: see RUN_LATER.
 * `pen policy explain` prints the reasons. `docs/protected-paths.md` explains them.
 */

interface ProtectedPlace {
  /** Relative to the workspace root. A directory protects everything in it. */
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

/** Denied in every profile, inside the workspace. The home needs no glob, because a sandbox has its own home. */
export const DENIED_GLOBS: readonly string[] = ['.env*']

/** Files that the agent may edit and that the host runs on a build, a test or a push. A run that changed one lists it at its end. */
export const RUN_LATER: readonly string[] = [
  // These come first, because a long list is cut.
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
