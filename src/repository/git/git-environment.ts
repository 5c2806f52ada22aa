/** Settings and variables of every git command that pen starts itself, on the host and in a box. */

const SETTINGS: Readonly<Record<string, string>> = {
  'core.hooksPath': '/dev/null',
  'core.fsmonitor': 'false',
  'core.untrackedCache': 'keep',
  'core.logAllRefUpdates': 'true',
  'core.bigFileThreshold': '16m',
  'core.packedGitLimit': '256m',
  // git would start gpg for each commit of a sandbox.
  'log.showSignature': 'false',
  'gc.auto': '0',
  'maintenance.auto': 'false',
  'pack.threads': '1',
  'protocol.allow': 'never',
  // Otherwise git looks for files of a sparse checkout in the working tree.
  'sparse.expectFilesOutsideOfPatterns': 'true',
}

export const GIT_ENVIRONMENT: Readonly<Record<string, string>> = {
  LC_ALL: 'C',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_CONFIG_GLOBAL: '/dev/null',
  GIT_ATTR_NOSYSTEM: '1',
  GIT_TERMINAL_PROMPT: '0',
  GIT_NO_REPLACE_OBJECTS: '1',
  // A partial clone would fetch missing objects, with the user's credentials.
  GIT_NO_LAZY_FETCH: '1',
  GIT_ALLOW_PROTOCOL: 'none',
  // The reflog says who moved a ref.
  GIT_COMMITTER_NAME: 'pen',
  GIT_COMMITTER_EMAIL: 'pen@localhost',
  GIT_CONFIG_COUNT: String(Object.keys(SETTINGS).length),
  ...Object.fromEntries(
    Object.entries(SETTINGS).flatMap(([key, value], i) => [
      [`GIT_CONFIG_KEY_${i}`, key],
      [`GIT_CONFIG_VALUE_${i}`, value],
    ]),
  ),
}
