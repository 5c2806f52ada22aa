/** The agents on the host whose commands `pen hook` sends into the sandbox, as data. docs/decisions/0091-hooks.md has the facts. */

import { opencodePlugin } from './opencode-plugin.ts'

export type Scope = 'project' | 'user'

export type HookedName = 'claude-code' | 'codex' | 'gemini' | 'opencode' | 'cursor'

/** A file that pen writes for an agent. */
export type HookFile =
  /** pen's entry goes into the list at `hooks.<event>` of the agent's settings. */
  | {
      readonly kind: 'settings'
      readonly path: Readonly<Record<Scope, string>>
      readonly event: string
      /** Whether the agent reads comments in it. */
      readonly comments: boolean
      /** A new file. */
      readonly empty: string
      readonly entry: (command: string) => object
    }
  /** The whole file is pen's. */
  | {
      readonly kind: 'own'
      readonly path: Readonly<Record<Scope, string>>
      /** `exec`: the words before each rewritten command. */
      readonly text: (exec: readonly string[], command: string) => string
    }

export interface HookedAgent {
  readonly title: string
  /** Relative to the project, or to the user's home. */
  readonly files: readonly HookFile[]
  /** The tools that run a `command` in a shell. */
  readonly shell: readonly string[]
  readonly reads: readonly string[]
  readonly writes: readonly string[]
  /** The tools that take a patch in the form of Codex. */
  readonly patches: readonly string[]
  /** Tools that pen refuses, and what to do instead. */
  readonly refused: Readonly<Record<string, string>>
  /** A variable with which the user moved the agent's own directory. pen then installs for projects alone. */
  readonly movedBy: string
  /** The only scope in which the hook is safe, and why. */
  readonly only?: { readonly scope: Scope; readonly why: string }
  /** What the user must know or do. */
  readonly notes: readonly string[]
}

const USE_GREP = 'use grep or rg in the shell: it runs in the sandbox'
const USE_FIND = 'use find or ls in the shell: it runs in the sandbox'
const USE_CAT = 'use cat in the shell: it runs in the sandbox'

const timeout = 60
const claudeEntry = (command: string): object => ({
  matcher: '*',
  hooks: [{ type: 'command', command, timeout }],
})

const quoted = (word: string): string => JSON.stringify(word)

export const HOOKED_AGENTS: Readonly<Record<HookedName, HookedAgent>> = {
  'claude-code': {
    title: 'Claude Code',
    movedBy: 'CLAUDE_CONFIG_DIR',
    files: [
      {
        kind: 'settings',
        path: { project: '.claude/settings.local.json', user: '.claude/settings.json' },
        event: 'PreToolUse',
        comments: false,
        empty: '{}\n',
        entry: claudeEntry,
      },
    ],
    shell: ['Bash', 'Monitor'],
    reads: ['Read'],
    writes: ['Write', 'Edit', 'MultiEdit', 'NotebookEdit'],
    patches: [],
    refused: { Grep: USE_GREP, Glob: USE_FIND, LS: USE_FIND, PowerShell: 'use Bash' },
    notes: [
      "Claude Code's own sandbox must be off: its commands could not reach pen",
      'a rule such as Bash(git push:*) sees the command line of pen exec',
      'a project whose settings have disableAllHooks switches the hook off',
    ],
  },
  codex: {
    title: 'Codex CLI',
    movedBy: 'CODEX_HOME',
    only: {
      scope: 'project',
      why: 'a rule of Codex for all projects would let a command choose the project',
    },
    files: [
      {
        kind: 'settings',
        path: { project: '.codex/hooks.json', user: '.codex/hooks.json' },
        event: 'PreToolUse',
        comments: false,
        empty: '{}\n',
        entry: claudeEntry,
      },
      {
        kind: 'own',
        path: { project: '.codex/rules/pen.rules', user: '.codex/rules/pen.rules' },
        text: exec =>
          `# Written by pen hook codex. These commands leave Codex's own sandbox: pen has another one for them.
prefix_rule(pattern = [${exec.map(quoted).join(', ')}], decision = "allow")
`,
      },
    ],
    shell: ['Bash'],
    reads: ['view_image'],
    writes: [],
    patches: ['apply_patch'],
    refused: {},
    notes: [
      'start codex and trust the hook in /hooks: until then, commands run in the sandbox of Codex alone',
      'a project hook also needs the project to be trusted in Codex',
    ],
  },
  gemini: {
    title: 'Gemini CLI',
    only: {
      scope: 'user',
      why: 'Gemini CLI ignores the hooks of a folder that it does not trust, and runs commands all the same',
    },
    movedBy: 'GEMINI_CLI_HOME',
    files: [
      {
        kind: 'settings',
        path: { project: '.gemini/settings.json', user: '.gemini/settings.json' },
        event: 'BeforeTool',
        comments: true,
        empty: '{}\n',
        entry: command => ({
          matcher: '.*',
          hooks: [{ name: 'pen', type: 'command', command, timeout: timeout * 1000 }],
        }),
      },
    ],
    shell: ['run_shell_command'],
    reads: ['read_file'],
    writes: ['write_file', 'replace'],
    patches: [],
    refused: {
      grep_search: USE_GREP,
      search_file_content: USE_GREP,
      glob: USE_FIND,
      list_directory: USE_FIND,
      read_many_files: USE_CAT,
    },
    notes: ['a project whose settings disable hooks in hooksConfig switches the hook off'],
  },
  opencode: {
    title: 'opencode',
    movedBy: 'OPENCODE_CONFIG_DIR',
    files: [
      {
        kind: 'own',
        path: { project: '.opencode/plugin/pen.js', user: '.config/opencode/plugin/pen.js' },
        text: (_exec, command) => opencodePlugin(command),
      },
    ],
    shell: ['bash'],
    reads: ['read'],
    writes: ['write', 'edit'],
    patches: ['apply_patch', 'patch'],
    refused: { grep: USE_GREP, glob: USE_FIND, list: USE_FIND },
    notes: [],
  },
  cursor: {
    title: 'Cursor',
    movedBy: 'CURSOR_CONFIG_DIR',
    files: [
      {
        kind: 'settings',
        path: { project: '.cursor/hooks.json', user: '.cursor/hooks.json' },
        event: 'preToolUse',
        comments: false,
        empty: '{\n  "version": 1\n}\n',
        entry: command => ({ command, timeout, failClosed: true }),
      },
    ],
    shell: ['Shell'],
    reads: ['Read'],
    writes: ['Write', 'Delete', 'StrReplace', 'EditNotebook'],
    patches: ['ApplyPatch'],
    refused: { Grep: USE_GREP, Glob: USE_FIND, LS: USE_FIND },
    notes: ['this follows the documentation of Cursor; pen has no tests with Cursor itself'],
  },
}

export const isHookedName = (name: string): name is HookedName => Object.hasOwn(HOOKED_AGENTS, name)
