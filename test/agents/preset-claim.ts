/**
 * What every preset must provide: the agent starts, writes in the project, is refused a host, and gets it
 * allowed while it runs.
 */
import { expect } from 'bun:test'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Launcher } from '../conformance/launcher.ts'
import { until } from '../until.ts'
import { type AgentName, AgentProject, onUsersOf, SECRET_WORD } from './agent-project.ts'
import type { ListenAt, Protocol, ToolCall } from './mock-model.ts'

/** Retries until a person allows the host, for at most twenty seconds. */
const RETRY = 'curl -sSf --retry 100 --retry-all-errors --retry-delay 1 --retry-max-time 20'

/** The agent's key. The model server gets it; the agent has a placeholder. */
export const KEY = 'sk-zqxj-0123456789abcdef0123456789'

export interface PresetClaim {
  readonly agent: AgentName
  readonly protocol: Protocol
  readonly listen?: () => ListenAt
  /** A call of the agent's shell tool. */
  readonly shell: (command: string) => ToolCall
  /** A call of the agent's file tool. */
  readonly write: (path: string, text: string) => ToolCall
  /** Words after `--` for one task without questions. */
  readonly words: readonly string[]
  readonly variables: (project: AgentProject) => Readonly<Record<string, string>>
  readonly flags?: (project: AgentProject) => readonly string[]
  readonly prepare?: (project: AgentProject) => void
  /** pen's note about the agent's own sandbox. */
  readonly says?: string
}

export function claimPreset(claim: PresetClaim): void {
  onUsersOf(
    claim.agent,
    `pen agent ${claim.agent}: a tool call writes, is refused, and is allowed meanwhile`,
    launcher => tryPreset(claim, launcher),
  )
}

/** A key goes to another address than that of its provider only if the user says so. */
async function allowKeyAt(project: AgentProject, variables: Readonly<Record<string, string>>): Promise<void> {
  const [key = ''] = Object.keys(variables).filter(name => variables[name] === KEY)
  const [address = ''] = Object.entries(variables).flatMap(([name, value]) =>
    name.endsWith('_BASE_URL') ? [value] : [],
  )
  const { protocol, host } = new URL(address)
  const to = protocol === 'http:' ? `http://${host}` : host
  const fields = ['x-api-key', 'x-goog-api-key', 'authorization'].flatMap(field => ['--header', field])
  const { code } = await project.sandbox.pen('secret', 'add', key, '--env', key, '--to', to, ...fields)
  expect(code).toBe(0)
}

async function tryPreset(claim: PresetClaim, launcher: Launcher): Promise<void> {
  const project = await AgentProject.open(
    claim.agent,
    launcher,
    claim.protocol,
    (port, directory) => [
      { call: [claim.write(join(directory, 'made.txt'), 'by the agent\n')] },
      { call: [claim.shell('id -un >> made.txt && cat made.txt; env')] },
      { call: [claim.shell(`curl -sS http://host.pen.internal:${port}/refused`)] },
      { call: [claim.shell(`${RETRY} http://host.pen.internal:${port}/allowed`)] },
      { say: 'all done' },
    ],
    claim.listen?.(),
  )
  try {
    claim.prepare?.(project)
    const variables = claim.variables(project)
    await allowKeyAt(project, variables)
    const running = project.start(claim.flags?.(project) ?? [], claim.words, variables)
    let isOver = false
    void running.ended.finally(() => {
      isOver = true
    })
    // The model has seen the refusal. A person now allows the host in another terminal.
    await until(() => isOver || project.model.outcomes.length >= 3)
    const allowed = isOver
      ? undefined
      : await project.sandbox.pen('allow', `host.pen.internal:${project.other.port}`)
    const { code, stdout, stderr } = await running.ended
    const seen = project.model.outcomes.map(({ text }) => text)
    expect([code, allowed?.code, project.model.unplayed, stderr]).toEqual([0, 0, 0, expect.anything()])
    expect(stdout).toContain('all done')
    expect(seen[1]).toContain('by the agent')
    expect(seen[2]).toContain(`pen allow host.pen.internal:${project.other.port}`)
    expect(seen[3]).toContain(SECRET_WORD)
    expect(project.other.requests).toEqual(['GET /allowed HTTP/1.1'])
    const made = join(project.sandbox.box.project, 'made.txt')
    expect(readFileSync(made, 'utf8')).toBe('by the agent\nagent\n')
    expect(statSync(made).uid).toBe(launcher.who.uid)
    // The model received pen's note about the sandbox.
    expect(JSON.stringify(project.model.requests.map(({ body }) => body))).toContain('You are in a sandbox')
    const { requests } = project.model
    const isTurn = requests.filter(({ body }) => JSON.stringify(body).includes('You are in a sandbox'))
    for (const { headers } of isTurn) expect([...headers.values()].join(' ')).toContain(KEY)
    expect(JSON.stringify(requests.map(({ body }) => body))).not.toContain(KEY)
    expect(stdout + stderr).not.toContain(KEY)
    if (claim.says !== undefined) expect(stderr).toContain(claim.says)
    expect(stderr).not.toContain('is not open')
  } finally {
    await project.close()
  }
}
