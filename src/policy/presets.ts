/**
 * Coding agents, as data: what each needs of a sandbox and nothing more. A change to a preset is a change of its version.
 * None shows the host's own credentials: what an agent keeps, it keeps in a volume of the project's sandbox, and keys of
 * the host are passed on by name, only those that are set.
 */
import type { GroupHost, GroupName } from './network/groups.ts'
import { NOTE_PATH, SANDBOX_HOME } from './profile.ts'

/** Whose models an agent talks to. */
export interface Provider {
  readonly group: GroupName
  /** Variables that hold a key or token for it. */
  readonly keys: readonly string[]
  /** Open without a key: the agent has a sign-in of its own for it, kept in a volume. */
  readonly always: boolean
}

export interface PresetVolume {
  readonly volume: string
  readonly at: string
  readonly holds: string
  /** Where in it the agent looks for instructions that hold everywhere. */
  readonly instructions?: string
}

export interface AgentPreset {
  readonly version: number
  readonly title: string
  /** The program, and what is always said to it. */
  readonly command: readonly [string, ...string[]]
  readonly providers: readonly Provider[]
  /** What it needs besides its models. */
  readonly hosts: readonly GroupHost[]
  readonly volumes: readonly PresetVolume[]
  /** Further variables that are passed on when the host has them; none is a secret or an address. */
  readonly passes: readonly string[]
  /** An address in one of these is passed on and not opened: a person must allow it. */
  readonly addresses: readonly string[]
  /** Where the agent takes such an address from its command line instead: the setting, and the words for a quoted value. */
  readonly addressFlag?: {
    readonly variable: string
    readonly setting: string
    readonly words: (quoted: string) => readonly string[]
  }
  readonly sets: Readonly<Record<string, string>>
  /**
   * What switches off the agent's own sandbox, which pen's filter would not let start: words of `command`, or a variable of `sets`. A flag
   * that the user gives comes later and wins.
   */
  readonly ownSandboxOff?: string
  /** It reads instructions in the directories above the project too. */
  readonly readsAbove: boolean
  readonly install: string
}

export type PresetName = 'claude-code' | 'codex' | 'gemini' | 'opencode' | 'aider'

/** For agents that talk to whatever the user has a key for. */
const BY_KEY: readonly Provider[] = [
  { group: 'anthropic', keys: ['ANTHROPIC_API_KEY'], always: false },
  { group: 'openai', keys: ['OPENAI_API_KEY'], always: false },
  { group: 'google-ai', keys: ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'], always: false },
]

export const PRESETS: Readonly<Record<PresetName, AgentPreset>> = {
  'claude-code': {
    version: 2,
    title: 'Claude Code',
    // A project may ask for the sandbox in its settings: the command line counts more.
    command: ['claude', '--settings', '{"sandbox":{"enabled":false}}'],
    ownSandboxOff: '--settings with sandbox.enabled false',
    providers: [
      {
        group: 'anthropic',
        keys: ['ANTHROPIC_API_KEY', 'ANTHROPIC_AUTH_TOKEN', 'CLAUDE_CODE_OAUTH_TOKEN'],
        always: true,
      },
    ],
    hosts: [],
    volumes: [
      {
        volume: 'claude-code',
        at: `${SANDBOX_HOME}/.claude`,
        holds: 'settings, sign-in and history',
        instructions: 'CLAUDE.md',
      },
    ],
    passes: ['ANTHROPIC_MODEL', 'ANTHROPIC_SMALL_FAST_MODEL', 'MAX_THINKING_TOKENS'],
    addresses: ['ANTHROPIC_BASE_URL'],
    sets: {
      // Otherwise a part of its state stands beside the directory, and is gone with the sandbox.
      CLAUDE_CONFIG_DIR: `${SANDBOX_HOME}/.claude`,
      // Reports and updates go to hosts that are not open: it need not try.
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      // Otherwise it refuses --dangerously-skip-permissions where the user inside is root.
      IS_SANDBOX: '1',
    },
    readsAbove: true,
    install: 'npm install --global @anthropic-ai/claude-code',
  },
  codex: {
    version: 2,
    title: 'Codex CLI',
    // Before the subcommand it holds for all of them: interactive, exec, resume and review.
    command: ['codex', '-c', 'sandbox_mode="danger-full-access"'],
    ownSandboxOff: '-c sandbox_mode="danger-full-access"',
    providers: [{ group: 'openai', keys: ['OPENAI_API_KEY', 'CODEX_API_KEY'], always: true }],
    hosts: [],
    volumes: [
      {
        volume: 'codex',
        at: `${SANDBOX_HOME}/.codex`,
        holds: 'settings, sign-in and history',
        instructions: 'AGENTS.md',
      },
    ],
    passes: [],
    addresses: ['OPENAI_BASE_URL'],
    // It does not read the variable any more.
    addressFlag: {
      variable: 'OPENAI_BASE_URL',
      setting: 'openai_base_url',
      words: quoted => ['-c', `openai_base_url=${quoted}`],
    },
    sets: { CODEX_HOME: `${SANDBOX_HOME}/.codex` },
    readsAbove: false,
    install: 'npm install --global @openai/codex',
  },
  gemini: {
    version: 2,
    title: 'Gemini CLI',
    command: ['gemini'],
    providers: [{ group: 'google-ai', keys: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'], always: true }],
    hosts: [],
    volumes: [
      {
        volume: 'gemini',
        at: `${SANDBOX_HOME}/.gemini`,
        holds: 'settings, sign-in and history',
        instructions: 'GEMINI.md',
      },
    ],
    passes: ['GEMINI_MODEL', 'GOOGLE_CLOUD_PROJECT', 'GOOGLE_CLOUD_LOCATION'],
    addresses: ['GOOGLE_GEMINI_BASE_URL'],
    sets: {
      // There is no browser inside: it prints the address to open.
      NO_BROWSER: 'true',
      // It then starts no container of its own, shows in its footer that it is in a sandbox, and tells its model.
      SANDBOX: 'pen',
    },
    ownSandboxOff: 'SANDBOX=pen',
    readsAbove: false,
    install: 'npm install --global @google/gemini-cli',
  },
  opencode: {
    version: 2,
    title: 'opencode',
    command: ['opencode'],
    providers: BY_KEY,
    hosts: [{ rule: 'models.opencode.ai:443', reason: 'the list of models and their providers' }],
    volumes: [
      {
        volume: 'opencode-config',
        at: `${SANDBOX_HOME}/.config/opencode`,
        holds: 'settings',
        instructions: 'AGENTS.md',
      },
      {
        volume: 'opencode-data',
        at: `${SANDBOX_HOME}/.local/share/opencode`,
        holds: 'sign-in and sessions',
      },
    ],
    passes: [],
    addresses: ['ANTHROPIC_BASE_URL', 'OPENAI_BASE_URL'],
    sets: { OPENCODE_DISABLE_AUTOUPDATE: 'true' },
    readsAbove: false,
    install: 'npm install --global opencode-ai',
  },
  aider: {
    version: 1,
    title: 'aider',
    command: ['aider'],
    providers: BY_KEY,
    hosts: [],
    volumes: [{ volume: 'aider', at: `${SANDBOX_HOME}/.aider`, holds: 'caches and analytics settings' }],
    passes: ['AIDER_MODEL', 'AIDER_WEAK_MODEL', 'AIDER_EDITOR_MODEL'],
    addresses: ['OPENAI_API_BASE'],
    sets: {
      // It reads no AGENTS.md of its own accord.
      AIDER_READ: NOTE_PATH,
      AIDER_ANALYTICS_DISABLE: 'true',
      AIDER_CHECK_UPDATE: 'false',
    },
    readsAbove: false,
    install: 'uv tool install aider-chat',
  },
}

export const isPresetName = (name: string): name is PresetName => Object.hasOwn(PRESETS, name)
