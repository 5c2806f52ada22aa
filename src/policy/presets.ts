/**
 * Presets of coding agents, as data: only what each agent needs. Every change to a preset raises its version.
 * No preset shows the host's credentials. An agent stores its state in a volume of the project's sandbox. Keys of the host
 * become secrets, if they are set: the agent has a placeholder, and the gateway puts the key into its requests.
 */
import type { GroupHost, GroupName } from './network/groups.ts'
import { NOTE_PATH, SANDBOX_HOME } from './profile.ts'

/** A provider of models that an agent uses. */
interface Provider {
  readonly group: GroupName
  /** Variables that hold a key or token for the provider. */
  readonly keys: readonly string[]
  /** Where such a key goes, and in which parts of a request. */
  readonly api: string
  readonly places: readonly string[]
  /** Variables that hold another address of the provider's API. */
  readonly addresses: readonly string[]
  /** Allowed without a key: the agent has its own sign-in, stored in a volume. */
  readonly always: boolean
  /** How pen keeps the tokens of that sign-in outside: see decision 83. */
  readonly signIn?: SignIn
}

interface SignIn {
  readonly name: string
  /** Servers whose answers hold tokens, and hosts that take the tokens. */
  readonly servers: readonly string[]
  readonly to: readonly string[]
  readonly in: readonly string[]
}

interface PresetVolume {
  readonly volume: string
  readonly at: string
  readonly holds: string
  /** The file in the volume in which the agent looks for global instructions. */
  readonly instructions?: string
}

export interface AgentPreset {
  readonly version: number
  readonly title: string
  /** The program and its fixed arguments. */
  readonly command: readonly [string, ...string[]]
  readonly providers: readonly Provider[]
  /** Hosts that the agent needs, other than its models. */
  readonly hosts: readonly GroupHost[]
  readonly volumes: readonly PresetVolume[]
  /** More host variables that are passed if set. None is a secret or an address. */
  readonly passes: readonly string[]
  /** Variables that hold an address. They are passed, but a person must allow the address. */
  readonly addresses: readonly string[]
  /** For an agent that takes such an address as a flag: the setting's name, and the arguments for a quoted value. */
  readonly addressFlag?: {
    readonly variable: string
    readonly setting: string
    readonly words: (quoted: string) => readonly string[]
  }
  readonly sets: Readonly<Record<string, string>>
  /**
   * How the preset switches off the agent's own sandbox, which cannot start inside pen: arguments of `command` or a variable
   * of `sets`. A flag of the user comes later and wins.
   */
  readonly ownSandboxOff?: string
  /** The agent also reads instructions in directories above the project. */
  readonly readsAbove: boolean
  readonly install: string
}

export type PresetName = 'claude-code' | 'codex' | 'gemini' | 'opencode' | 'aider'

const ANTHROPIC = {
  group: 'anthropic',
  api: 'api.anthropic.com:443',
  places: ['header:x-api-key', 'header:authorization'],
  addresses: ['ANTHROPIC_BASE_URL'],
  signIn: {
    name: 'CLAUDE_SIGN_IN',
    servers: [
      'platform.claude.com:443/v1/oauth/token',
      'console.anthropic.com:443/v1/oauth/token',
      'api.anthropic.com:443/api/oauth/claude_cli/create_api_key',
    ],
    to: ['api.anthropic.com:443'],
    in: ['header:authorization', 'header:x-api-key'],
  },
} as const
const OPENAI = {
  group: 'openai',
  api: 'api.openai.com:443',
  places: ['header:authorization'],
  addresses: ['OPENAI_BASE_URL', 'OPENAI_API_BASE'],
  signIn: {
    name: 'OPENAI_SIGN_IN',
    servers: ['auth.openai.com:443/oauth/token', 'auth.openai.com:443/oauth/revoke'],
    to: ['chatgpt.com:443', 'api.openai.com:443'],
    in: ['header:authorization'],
  },
} as const
const GOOGLE = {
  group: 'google-ai',
  api: 'generativelanguage.googleapis.com:443',
  places: ['header:x-goog-api-key', 'header:authorization', 'query:key'],
  addresses: ['GOOGLE_GEMINI_BASE_URL'],
} as const

/** For agents that use any provider for which the user has a key. */
const BY_KEY: readonly Provider[] = [
  { ...ANTHROPIC, keys: ['ANTHROPIC_API_KEY'], always: false },
  { ...OPENAI, keys: ['OPENAI_API_KEY'], always: false },
  { ...GOOGLE, keys: ['GEMINI_API_KEY', 'GOOGLE_GENERATIVE_AI_API_KEY'], always: false },
]

export const PRESETS: Readonly<Record<PresetName, AgentPreset>> = {
  'claude-code': {
    version: 4,
    title: 'Claude Code',
    // A project can enable the sandbox in its settings. The command line overrides that.
    command: ['claude', '--settings', '{"sandbox":{"enabled":false}}'],
    ownSandboxOff: '--settings with sandbox.enabled false',
    providers: [
      {
        ...ANTHROPIC,
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
      // By default part of the state is beside this directory and is lost with the sandbox.
      CLAUDE_CONFIG_DIR: `${SANDBOX_HOME}/.claude`,
      // Reports and updates use hosts that are not allowed.
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
      DISABLE_AUTOUPDATER: '1',
      // Without it, Claude Code refuses --dangerously-skip-permissions when the user inside is root.
      IS_SANDBOX: '1',
    },
    readsAbove: true,
    install: 'npm install --global @anthropic-ai/claude-code',
  },
  codex: {
    version: 4,
    title: 'Codex CLI',
    // Before the subcommand, the flag applies to all of them: interactive, exec, resume and review.
    command: ['codex', '-c', 'sandbox_mode="danger-full-access"'],
    ownSandboxOff: '-c sandbox_mode="danger-full-access"',
    providers: [{ ...OPENAI, keys: ['OPENAI_API_KEY', 'CODEX_API_KEY'], always: true }],
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
    // Codex no longer reads the variable.
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
    version: 4,
    title: 'Gemini CLI',
    command: ['gemini'],
    providers: [{ ...GOOGLE, keys: ['GEMINI_API_KEY', 'GOOGLE_API_KEY'], always: true }],
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
      // There is no browser inside. Gemini prints the address to open instead.
      NO_BROWSER: 'true',
      // Gemini then starts no container of its own, and shows in its footer and to its model that it runs in a sandbox.
      SANDBOX: 'pen',
    },
    ownSandboxOff: 'SANDBOX=pen',
    readsAbove: false,
    install: 'npm install --global @google/gemini-cli',
  },
  opencode: {
    version: 4,
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
    version: 3,
    title: 'aider',
    command: ['aider'],
    providers: BY_KEY,
    hosts: [],
    volumes: [{ volume: 'aider', at: `${SANDBOX_HOME}/.aider`, holds: 'caches and analytics settings' }],
    passes: ['AIDER_MODEL', 'AIDER_WEAK_MODEL', 'AIDER_EDITOR_MODEL'],
    addresses: ['OPENAI_API_BASE'],
    sets: {
      // aider does not read AGENTS.md by default.
      AIDER_READ: NOTE_PATH,
      AIDER_ANALYTICS_DISABLE: 'true',
      AIDER_CHECK_UPDATE: 'false',
    },
    readsAbove: false,
    install: 'uv tool install aider-chat',
  },
}

export const isPresetName = (name: string): name is PresetName => Object.hasOwn(PRESETS, name)

/** A document that the user chose by name. It is trusted like the command line, and weaker than the user's own config. */
export interface NamedDocument {
  readonly name: string
  readonly document: object
}

export interface PresetLayer extends NamedDocument {
  readonly groups: readonly GroupName[]
  readonly hosts: readonly string[]
  /** Host variables that are passed to the sandbox. */
  readonly passed: readonly string[]
  /** The passed variables that hold keys or tokens. */
  readonly keys: readonly string[]
  /** Keys that the sandbox has placeholders for, and where each may go. */
  readonly secrets: readonly { readonly name: string; readonly to: readonly string[] }[]
  /** The passed variables that hold an address. The preset does not allow that address. */
  readonly addresses: readonly string[]
}

/** What a preset asks about the host's variables. It never asks for the value of a key. */
export interface PresetEnvironment {
  isSet(variable: string): boolean
  /** Whether the value is fit for a secret. Others, such as `none` for a local model, are passed on. */
  isSecret(variable: string): boolean
}

/** The layer of a preset for one run. */
export function presetLayer(name: PresetName, env: PresetEnvironment): PresetLayer {
  const preset = PRESETS[name]
  const isSet = (variable: string): boolean => env.isSet(variable)
  // Never to the host of an address variable: a project's `.envrc` can set that.
  const secrets = preset.providers.flatMap(({ keys, api, places }) =>
    keys
      .filter(key => isSet(key) && env.isSecret(key))
      .map(key => ({ name: key, from: { env: key }, to: [api], in: places })),
  )
  const isKept = (key: string): boolean => secrets.some(secret => secret.name === key)
  const keys = preset.providers.flatMap(provider => provider.keys).filter(key => isSet(key) && !isKept(key))
  const addresses = preset.addresses.filter(isSet)
  const passed = [...keys, ...preset.passes.filter(isSet), ...addresses]
  const groups = preset.providers
    .filter(provider => provider.always || provider.keys.some(isSet))
    .map(provider => provider.group)
  const hosts = preset.hosts.map(({ rule }) => rule)
  const signIns = preset.providers.flatMap(({ always, signIn }) => {
    if (!always || signIn === undefined) return []
    const { servers, ...secret } = signIn
    return [{ ...secret, from: { oauth: servers } }]
  })
  return {
    name: `preset ${name} v${preset.version}`,
    groups,
    hosts,
    passed,
    keys,
    secrets,
    addresses,
    document: {
      // An empty list would remove the grants of other layers.
      network: { ...(groups.length > 0 && { groups }), ...(hosts.length > 0 && { http: hosts }) },
      mounts: preset.volumes.map(({ volume, at }) => ({ volume, at })),
      env: { ...preset.sets, ...Object.fromEntries(passed.map(variable => [variable, { from: 'host' }])) },
      ...(secrets.length + signIns.length > 0 && { secrets: [...secrets, ...signIns] }),
    },
  }
}
