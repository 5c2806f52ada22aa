import type { ExitCode } from './base/error.ts'
import { dispatch, fail, mentionsJson } from './cli/frame/dispatch.ts'
import { openTerminal } from './cli/frame/terminal.ts'
import { VERB_GROUPS, VERBS } from './cli/frame/verbs.ts'

const argv = process.argv.slice(2)
const context = { env: process.env, terminal: openTerminal(process.env), verbs: VERBS, groups: VERB_GROUPS }

/** The only exit. Output is written synchronously, so nothing is lost by leaving at once. */
const exit = (code: ExitCode): never => process.exit(code)

/** An unhandled rejection leaves an unknown state, so pen exits. */
const end = (error: unknown): never => exit(fail(error, mentionsJson(argv), context))
process.on('uncaughtException', end)
process.on('unhandledRejection', end)

const HIDDEN = new Map([
  // Inside a sandbox's namespace, before the sandbox is. It refuses to run unless pen itself started it.
  ['__door', () => import('./gateway/netns/door-mode.ts').then(mode => mode.runDoorMode(argv.slice(1)))],
  // Inside a running sandbox's mounts, for the moment that a new one takes.
  ['__mount', () => import('./backend/mounts/mount-inside.ts').then(mode => mode.mountInside())],
  // In a mount namespace of its own, for a caller that may not mount.
  ['__clone', () => import('./backend/mounts/clone-trees.ts').then(mode => mode.cloneTrees())],
  [
    '__root-helper',
    () => import('./backend/container/root-helper/serve.ts').then(mode => mode.runRootHelper(argv.slice(1))),
  ],
  ['__knock', () => import('./doctor/knock.ts').then(mode => mode.knock())],
  ['__guest', () => import('./doctor/guest.ts').then(mode => mode.runGuest())],
  [
    '__complete',
    () => import('./cli/completion/complete.ts').then(mode => mode.complete(argv.slice(1), VERBS)),
  ],
  [
    '__part',
    () =>
      import('./cli/verbs/run/part.ts').then(mode =>
        mode.runPart(argv.slice(1), words => dispatch(words, context)),
      ),
  ],
  ['__hook', () => import('./hooks/answer.ts').then(mode => mode.answerHook(argv.slice(1)))],
  ['__supervisor', () => import('./lifecycle/detached.ts').then(mode => mode.superviseDetached())],
  ['__start', () => import('./lifecycle/start-for-program.ts').then(mode => mode.startForProgram())],
  ['__supervise', () => import('./backend/soft/gate/supervise.ts').then(mode => mode.supervise())],
  ['__exec-daemon', () => import('./guest/exec-daemon.ts').then(mode => mode.runExecDaemon(argv.slice(1)))],
  ['__file', () => import('./guest/file-tool.ts').then(mode => mode.runFileTool(argv.slice(1)))],
  ['__sftp', () => import('./guest/sftp-server.ts').then(mode => mode.runSftpServer(argv.slice(1)))],
  ['__ssh', () => import('./ssh-server/serve.ts').then(mode => mode.serveSsh(argv.slice(1)))],
  ['__listed', () => import('./guest/listed.ts').then(mode => mode.runListed(argv.slice(1)))],
])
const hidden = HIDDEN.get(argv[0] ?? '')
// The build makes the compiler wait, for the sake of `pen run`, which ends that when its command has started.
if (argv[0] !== 'run' && hidden === undefined) Bun.unsafe.setJITPolicy(1)

/** A supervisor takes as long to begin as a command: that of `pen start` begins before its flags are read. */
async function perform(): Promise<ExitCode> {
  if (argv[0] === 'start') (await import('./lifecycle/spare-supervisor.ts')).beginSpare()
  return await dispatch(argv, context)
}

const work = hidden === undefined ? perform() : hidden()
work.then(exit, end)
