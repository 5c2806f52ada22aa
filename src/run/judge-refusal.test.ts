import { describe, expect, test } from 'bun:test'
import { temporaryProject, withHome } from '../../test/temporary-project.ts'
import type { AuditEventInput } from '../audit/event.ts'
import { loadPolicy } from '../config/load.ts'
import { findProject } from '../config/project.ts'
import { judgeRefusal, type Question } from './judge-refusal.ts'
import type { Serving } from './supervision/supervisor.ts'

async function judge(question: Question, flags: object = {}) {
  using here = temporaryProject()
  const recorded: AuditEventInput[] = []
  const loaded = await withHome(here.home, () =>
    loadPolicy(findProject(here.workspace), { flags, offline: true, allowUserExpansion: false }),
  )
  const serving = {
    prepared: { loaded },
    refusals: { record: (event: AuditEventInput) => recorded.push(event) },
  }
  const path = question.path.replace('HOME', here.home)
  const judged = judgeRefusal(serving as unknown as Serving, { ...question, path })
  return { judged, recorded, path }
}

describe('something that could not be opened', () => {
  test('because the policy hides it is recorded as refused, with what would allow it', async () => {
    const { judged, recorded, path } = await judge({ access: 'read', path: 'HOME/notes/a.txt' })
    expect(judged).toMatchObject({ reason: 'not-granted', fix: `pen grant ${path} --for 1h` })
    expect(recorded).toMatchObject([{ kind: 'file-denied', access: 'read', path, reason: 'not-granted' }])
    // What no grant can give is no command to copy.
    expect((await judge({ access: 'read', path: '/' })).judged).toMatchObject({
      reason: 'not-granted',
      fix: 'name the directory inside it that is needed',
    })
    const secret = await judge({ access: 'read', path: 'HOME/project/.env' })
    expect(secret.judged).toMatchObject({ reason: 'denied-by-rule' })
    const hook = await judge({ access: 'write', path: 'HOME/project/.git/hooks/x' })
    expect(hook.judged).toMatchObject({ reason: 'protected' })
  })

  test('though the policy grants it is simply not there, and no refusal', async () => {
    const { judged, recorded } = await judge({ access: 'read', path: 'HOME/project/absent.txt' })
    expect(judged).toBeNull()
    expect(recorded).toEqual([])
  })

  test('P15 a name that could be taken for a command is quoted as one word, or left out', async () => {
    const { judged, path } = await judge({ access: 'read', path: 'HOME/x; rm -rf ~' })
    expect(judged?.fix).toBe(`pen grant '${path}' --for 1h`)
    const lines = await judge({ access: 'read', path: 'HOME/x\nrm -rf ~' })
    expect(lines.judged?.fix).toBe('add it to files.read in your config')
  })

  test('is a program: one that no list names, or a shell where there is to be none', async () => {
    expect((await judge({ access: 'exec', path: 'curl' })).judged).toBeNull()
    const tools = { tools: { allow: ['git'], shell: false } }
    const unlisted = await judge({ access: 'exec', path: '/usr/bin/curl' }, tools)
    expect(unlisted.judged).toMatchObject({ reason: 'not-listed' })
    expect(unlisted.recorded).toMatchObject([{ kind: 'tool-denied', command: ['/usr/bin/curl'] }])
    expect((await judge({ access: 'exec', path: 'git' }, tools)).judged).toBeNull()
    expect((await judge({ access: 'exec', path: '/bin/sh' }, tools)).judged).toMatchObject({
      reason: 'shell-off',
    })
  })
})
