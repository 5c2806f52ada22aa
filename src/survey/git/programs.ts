/**
 * Programs that the user's git settings make git run: a filter, a merge driver, a monitor. If one is in the workspace, a
 * sandbox could rewrite it, and the next `git status` on the host would run it.
 */
import type { GitSetting } from './config.ts'

/** Aliases are left out: git runs them only when the user names them. */
const RUN_BY_GIT = new Set([
  ...['fsmonitor', 'sshcommand', 'editor', 'pager', 'askpass', 'gitproxy', 'alternaterefscommand'].map(
    name => `core.${name}`,
  ),
  ...['external', 'command', 'textconv'].map(name => `diff.${name}`),
  ...['clean', 'smudge', 'process'].map(name => `filter.${name}`),
  'merge.driver',
  'sequence.editor',
  'interactive.difffilter',
  'credential.helper',
  ...['program', 'defaultkeycommand'].map(name => `gpg.${name}`),
  ...['command', 'cmd'].map(name => `trailer.${name}`),
  ...['uploadpack', 'receivepack'].map(name => `remote.${name}`),
  'submodule.update',
  'hook.command',
])

/** Every word of their commands that can be a file's name: in `node tools/merge.js %A` the second is what counts. */
export function wordsRunByGit(settings: readonly GitSetting[]): readonly string[] {
  const commands = settings.filter(({ key }) => RUN_BY_GIT.has(key) || key.startsWith('pager.'))
  const words = commands.flatMap(({ value }) => value.split(/[\s!'"`;|&()<>=$]+/))
  // A bare word is looked for in PATH, or is an argument.
  return [...new Set(words)].filter(word => /[./]/.test(word) && !word.startsWith('-'))
}
