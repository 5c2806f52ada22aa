import type { VerbGroup, VerbTable } from './verb.ts'

/**
 * Every verb by name, one or two words. The imports are lazy, so that pen loads only the verb in use. Their paths are
 * literals, because the bundler includes only modules that it can see.
 */
export const VERB_GROUPS: readonly VerbGroup[] = [
  {
    title: 'Run',
    common: ['run', 'plan'],
    verbs: {
      run: () => import('../verbs/run/run.ts'),
      plan: () => import('../verbs/run/plan.ts'),
      'policy explain': () => import('../verbs/run/policy-explain.ts'),
    },
  },
  {
    title: 'Project sandbox',
    common: ['start', 'exec', 'stop'],
    verbs: {
      start: () => import('../verbs/sandbox/start.ts'),
      exec: () => import('../verbs/sandbox/exec.ts'),
      shell: () => import('../verbs/sandbox/shell.ts'),
      stop: () => import('../verbs/sandbox/stop.ts'),
      restart: () => import('../verbs/sandbox/restart.ts'),
      status: () => import('../verbs/sandbox/status.ts'),
      forward: () => import('../verbs/sandbox/forward.ts'),
      open: () => import('../verbs/sandbox/open.ts'),
      ssh: () => import('../verbs/sandbox/ssh.ts'),
      'ssh-config': () => import('../verbs/sandbox/ssh-config.ts'),
      ls: () => import('../verbs/sandbox/ls.ts'),
      stats: () => import('../verbs/sandbox/stats.ts'),
      rm: () => import('../verbs/sandbox/rm.ts'),
    },
  },
  {
    title: 'Network',
    common: ['allow', 'watch', 'logs'],
    verbs: {
      allow: () => import('../verbs/network/allow.ts'),
      deny: () => import('../verbs/network/deny.ts'),
      forget: () => import('../verbs/network/forget.ts'),
      groups: () => import('../verbs/network/groups.ts'),
      watch: () => import('../verbs/network/watch.ts'),
      logs: () => import('../verbs/network/logs.ts'),
      'proxy logs': () => import('../verbs/network/proxy-logs.ts'),
      'secret add': () => import('../verbs/network/secret-add.ts'),
      'secret list': () => import('../verbs/network/secret-list.ts'),
      'secret remove': () => import('../verbs/network/secret-remove.ts'),
      'secret test': () => import('../verbs/network/secret-test.ts'),
    },
  },
  {
    title: 'Files',
    common: ['grant'],
    verbs: {
      grant: () => import('../verbs/files/grant.ts'),
      revoke: () => import('../verbs/files/revoke.ts'),
      grants: () => import('../verbs/files/grants.ts'),
      'files ls': () => import('../verbs/files/ls.ts'),
      'files stat': () => import('../verbs/files/stat.ts'),
      'files cat': () => import('../verbs/files/cat.ts'),
      'files get': () => import('../verbs/files/get.ts'),
      'files put': () => import('../verbs/files/put.ts'),
    },
  },
  {
    title: 'Review, git',
    common: ['diff', 'accept'],
    verbs: {
      diff: () => import('../verbs/review/diff.ts'),
      accept: () => import('../verbs/review/accept.ts'),
      discard: () => import('../verbs/review/discard.ts'),
      compare: () => import('../verbs/review/compare.ts'),
      checkpoint: () => import('../verbs/review/checkpoint.ts'),
      checkpoints: () => import('../verbs/review/checkpoints.ts'),
      rollback: () => import('../verbs/review/rollback.ts'),
      'git status': () => import('../verbs/git/status.ts'),
      'git log': () => import('../verbs/git/log.ts'),
      'git import': () => import('../verbs/git/import.ts'),
    },
  },
  {
    title: 'Config',
    common: ['init', 'config set', 'config apply'],
    verbs: {
      init: () => import('../verbs/config/init.ts'),
      'config show': () => import('../verbs/config/show.ts'),
      'config get': () => import('../verbs/config/get.ts'),
      'config set': () => import('../verbs/config/set.ts'),
      'config edit': () => import('../verbs/config/edit.ts'),
      'config diff': () => import('../verbs/config/diff.ts'),
      'config apply': () => import('../verbs/config/apply.ts'),
      'config backup': () => import('../verbs/config/backup.ts'),
      'config schema': () => import('../verbs/config/schema.ts'),
    },
  },
  {
    title: 'Agents, builders',
    common: ['agent', 'build'],
    verbs: {
      agent: () => import('../verbs/agents/agent.ts'),
      hook: () => import('../verbs/agents/hook.ts'),
      mcp: () => import('../verbs/agents/mcp.ts'),
      build: () => import('../verbs/agents/build.ts'),
    },
  },
  {
    title: 'Maintenance',
    common: ['doctor'],
    verbs: {
      doctor: () => import('../verbs/maintenance/doctor.ts'),
      gc: () => import('../verbs/maintenance/gc.ts'),
      uninstall: () => import('../verbs/maintenance/uninstall.ts'),
      completion: () => import('../verbs/maintenance/completion.ts'),
      help: () => import('../verbs/maintenance/help.ts'),
      version: () => import('../verbs/maintenance/version.ts'),
    },
  },
]

export const VERBS: VerbTable = Object.assign({}, ...VERB_GROUPS.map(({ verbs }) => verbs))
