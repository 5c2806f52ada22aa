/**
 * A real agent in its user's project, with a scripted model server and a second server, both on the host's
 * loopback.
 */
import { realpathSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PRESETS } from '../../src/policy/presets.ts'
import { Box } from '../conformance/box.ts'
import { LAUNCHERS, type Launcher } from '../conformance/launcher.ts'
import { answer, Recorder, serveHttp } from '../gateway/recorder.ts'
import { type Command, ProjectSandbox } from '../lifecycle/project-sandbox.ts'
import { skipUnless } from '../skip.ts'
import { type ListenAt, MockModel, type Protocol, type Turn } from './mock-model.ts'
import { missingAgents, PROGRAMS } from './programs.ts'

export type AgentName = keyof typeof PROGRAMS

/** The second server's answer. The model sees it after a person allows that server. */
export const SECRET_WORD = 'granted-meanwhile'

export class AgentProject {
  readonly sandbox: ProjectSandbox
  readonly model: MockModel
  readonly other: Recorder
  readonly #agent: AgentName
  readonly #bin: string

  private constructor(agent: AgentName, box: Box, model: MockModel, other: Recorder) {
    this.#agent = agent
    this.sandbox = new ProjectSandbox(box)
    this.model = model
    this.other = other
    // Puts the program into a directory of PATH, as an installation for all users does.
    this.#bin = box.directory(join(box.root, 'bin'))
    const [program] = PRESETS[agent].command
    symlinkSync(realpathSync(PROGRAMS[agent]), join(this.#bin, program))
  }

  static async open(
    agent: AgentName,
    launcher: Launcher,
    protocol: Protocol,
    turns: (otherPort: number, directory: string) => readonly Turn[],
    at: ListenAt = {},
  ): Promise<AgentProject> {
    const box = new Box(launcher)
    box.host('git init -q .')
    const other = await Recorder.start()
    other.behave = serveHttp(answer(SECRET_WORD))
    return new AgentProject(agent, box, MockModel.open(protocol, turns(other.port, box.project), at), other)
  }

  get port(): number {
    return Number(new URL(this.model.url).port)
  }
  /** The model server's address as seen inside. */
  get address(): string {
    const { protocol } = new URL(this.model.url)
    return `${protocol}//host.pen.internal:${this.port}`
  }

  /** A file of the agent's volume, as an earlier session would leave it. */
  remember(path: string, text: string): void {
    const [volume] = PRESETS[this.#agent].volumes
    const { box, stateDir } = this.sandbox
    box.directory(join(box.home, '.pen/sandboxes'), 0o700)
    box.directory(stateDir, 0o700)
    box.file(join(stateDir, 'volumes', volume?.volume ?? '', path), text, 0o600)
  }

  /** `pen agent NAME -- WORDS`, with the model server allowed unless `isAllowed` is false. */
  argv(flags: readonly string[], words: readonly string[], isAllowed = true): readonly string[] {
    const program = realpathSync(PROGRAMS[this.#agent])
    const shown = [this.#bin, this.#agent === 'gemini' ? dirname(dirname(program)) : dirname(program)]
    return [
      'agent',
      this.#agent,
      ...['--backend', 'process', ...(isAllowed ? ['--allow', `host.pen.internal:${this.port}`] : [])],
      ...shown.flatMap(path => ['--read', path]),
      ...flags,
      '--',
      ...words,
    ]
  }

  env(variables: Readonly<Record<string, string>>): Record<string, string> {
    return { PATH: `${this.#bin}:/usr/local/bin:/usr/bin:/bin`, ...variables }
  }

  start(
    flags: readonly string[],
    words: readonly string[],
    variables: Readonly<Record<string, string>>,
  ): Command {
    return this.sandbox.start(this.argv(flags, words), { env: this.env(variables), timeoutMs: 50_000 })
  }

  async close(): Promise<void> {
    await this.model.close()
    this.other.close()
    this.sandbox.box.remove()
  }
}

export const define = skipUnless(missingAgents().length === 0, 'the agents of test/agents are not installed')

/** One test of codex for each kind of user. The other presets differ in hosts and files alone: an ordinary user is enough. */
export function onUsersOf(
  agent: AgentName,
  title: string,
  body: (launcher: Launcher) => Promise<void>,
): void {
  for (const launcher of LAUNCHERS.slice(agent === 'codex' ? 0 : -1))
    define(`${title} (${launcher.name})`, () => body(launcher), 60_000)
}
