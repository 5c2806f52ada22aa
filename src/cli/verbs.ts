import type { VerbTable } from './verb.ts'

/**
 * Every verb, by name; two words for one inside a group. Specifiers are literal, because a compiled binary has no
 * other modules, and behind functions, because only the verb in use is evaluated: the rest costs no start time.
 */
export const VERBS: VerbTable = {
  run: () => import('./run.ts'),
  start: () => import('./start.ts'),
  stop: () => import('./stop.ts'),
  restart: () => import('./restart.ts'),
  status: () => import('./status.ts'),
  shell: () => import('./shell.ts'),
  exec: () => import('./exec.ts'),
  ls: () => import('./ls.ts'),
  stats: () => import('./stats.ts'),
  rm: () => import('./rm.ts'),
  gc: () => import('./gc.ts'),
  agent: () => import('./agent.ts'),
  plan: () => import('./plan.ts'),
  'policy explain': () => import('./policy-explain.ts'),
  logs: () => import('./logs.ts'),
  'proxy logs': () => import('./proxy-logs.ts'),
  allow: () => import('./allow.ts'),
  deny: () => import('./deny.ts'),
  forget: () => import('./forget.ts'),
  groups: () => import('./groups.ts'),
  doctor: () => import('./doctor.ts'),
  completion: () => import('./completion.ts'),
  init: () => import('./init.ts'),
  build: () => import('./build.ts'),
  'config show': () => import('./config-show.ts'),
  'config get': () => import('./config-get.ts'),
  'config set': () => import('./config-set.ts'),
  'config edit': () => import('./config-edit.ts'),
  'config diff': () => import('./config-diff.ts'),
  'config apply': () => import('./config-apply.ts'),
  'config backup': () => import('./config-backup.ts'),
  'config schema': () => import('./config-schema.ts'),
  help: () => import('./help.ts'),
  version: () => import('./version.ts'),
}
