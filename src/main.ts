import type { ExitCode } from './base/error.ts'
import { dispatch, fail, mentionsJson } from './cli/dispatch.ts'
import { openTerminal } from './cli/terminal.ts'
import { VERBS } from './cli/verbs.ts'

const argv = process.argv.slice(2)
const surroundings = { env: process.env, terminal: openTerminal(process.env), verbs: VERBS }

/** The only exit. Output is written synchronously, so nothing is lost by leaving at once. */
const exit = (code: ExitCode): never => process.exit(code)

/** A failure nobody awaited: what state it left is unknown, so pen ends rather than goes on. */
const end = (error: unknown): never => exit(fail(error, mentionsJson(argv), surroundings))
process.on('uncaughtException', end)
process.on('unhandledRejection', end)

/** pen inside a sandbox's namespace, before the sandbox is: it refuses to run unless pen itself started it. */
const openDoor = (): Promise<ExitCode> =>
  import('./gateway/door-inside.ts').then(({ openInside }) => openInside(argv.slice(1)))

/** pen inside a running sandbox's mounts, for the moment that a new one takes. */
const mountInside = (): Promise<ExitCode> =>
  import('./backend/mounts/mount-inside.ts').then(mode => mode.mountInside())

const HIDDEN = new Map([
  ['__door', openDoor],
  ['__mount', mountInside],
  ['__hand', () => import('./hand/hand.ts').then(mode => mode.runHand(argv.slice(1)))],
  ['__knock', () => import('./doctor/knock.ts').then(mode => mode.knock())],
  ['__guest', () => import('./doctor/guest.ts').then(mode => mode.runGuest())],
  ['__complete', () => import('./cli/complete.ts').then(mode => mode.complete(argv.slice(1), VERBS))],
  ['__keep', () => import('./sandbox/detached.ts').then(mode => mode.keepDetached())],
  ['__start', () => import('./sandbox/start-for-program.ts').then(mode => mode.startForProgram())],
  ['__supervise', () => import('./gate/supervise.ts').then(mode => mode.supervise())],
  ['__agent', () => import('./inner/agent.ts').then(mode => mode.runAgent(argv.slice(1)))],
  ['__file', () => import('./inner/file-tool.ts').then(mode => mode.runFileTool(argv.slice(1)))],
  ['__listed', () => import('./inner/listed.ts').then(mode => mode.runListed(argv.slice(1)))],
])
const hidden = HIDDEN.get(argv[0] ?? '')
// The build makes the compiler wait, for the sake of `pen run`, which ends that when its command has started.
if (argv[0] !== 'run' && hidden === undefined) Bun.unsafe.setJITPolicy(1)

/** A keeper takes as long to begin as a command: that of `pen start` begins before its flags are read. */
async function perform(): Promise<ExitCode> {
  if (argv[0] === 'start') (await import('./sandbox/spare-keeper.ts')).beginSpare()
  return await dispatch(argv, surroundings)
}

const work = hidden === undefined ? perform() : hidden()
work.then(exit, end)
