/**
 * The library without kernel help: every call goes through the gate, is recorded once, and says that it is
 * soft.
 */
import { expect } from 'bun:test'
import { existsSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { accepting, GAPS } from '../soft/soft-box.ts'
import { until } from '../until.ts'
import { withClient } from './mcp-client.ts'
import { onGrounds, type Place, SOFT } from './place.ts'
import { withProgram } from './program.ts'

const policy = { acceptGaps: GAPS, network: { offline: true } }
const start = ({ project }: Place, more: object = {}) => ({
  project,
  isolation: 'soft',
  policy: { ...policy, ...more },
})
const denied = (place: Place, kind: string) => place.audit().filter(line => line['kind'] === kind)

onGrounds(SOFT, 'is started by name only, with every gap accepted, and says so', async place => {
  await withProgram(place, 'node', async program => {
    const { project } = place
    expect(await program.failure('start', { project, isolation: 'soft' })).toMatchObject({
      code: 'GAP',
      what: expect.stringContaining('files-by-gate'),
    })
    const started = await program.ask('start', start(place))
    expect(started).toMatchObject({ isolation: 'soft', backend: 'soft', joined: false })
    expect(started.notes[0]).toStartWith('SOFT_SANDBOX=true: no kernel confines this run')
    expect(place.pen('status').stdout).toContain('SOFT_SANDBOX=true')
    await program.kill()
  })
  await until(() => !place.isRunning())
})

onGrounds(SOFT, 'runs listed programs, and refuses others once, with reason and fix', async place => {
  await withProgram(place, 'node', async program => {
    await program.ask('start', start(place, { tools: { allow: ['env', 'sleep'] } }))
    const { stdout, exitCode } = await program.exec(['env'], { env: { SOFT_SANDBOX: 'no' } })
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('SOFT_SANDBOX=true\n')])
    expect(await program.exec('echo line')).toMatchObject({
      exitCode: 126,
      stderr: expect.stringContaining('may not be run'),
      denials: [
        {
          kind: 'tool',
          target: '/bin/sh',
          reason: 'shell-off',
          permission: expect.stringContaining('tools.shell'),
        },
      ],
    })
    expect(await program.exec(['id'])).toMatchObject({ exitCode: 126, denials: [{ reason: 'not-listed' }] })
    expect(await program.exec(['nothing-like-it'])).toMatchObject({ exitCode: 127 })
    expect(denied(place, 'tool-denied')).toHaveLength(3)
    expect(await program.exec(['sleep', '60'], { timeout: 300 })).toMatchObject({
      exitCode: 124,
      timedOut: true,
    })
    await program.ask('stop')
  })
})

onGrounds(
  SOFT,
  'reads, writes, lists and deletes files through the gate, which follows no link out',
  async place => {
    place.file('.env', 'SECRET')
    const outside = place.file(join(place.home, 'notes.txt'), 'buy milk')
    symlinkSync(outside, join(place.project, 'link'))
    await withProgram(place, 'bun', async program => {
      await program.ask('start', start(place))
      await program.ask('write', {
        path: 'bin/tool',
        content: 'x'.repeat(200_000),
        options: { executable: true },
      })
      expect(statSync(join(place.project, 'bin/tool')).mode & 0o777).toBe(0o755)
      expect((await program.ask('read', { path: 'bin/tool' })).length).toBe(200_000)
      expect(await program.ask('read', { path: 'bin/tool', options: { from: 199_999, length: 9 } })).toBe('x')
      expect(await program.ask('list', { path: '.' })).toMatchObject({
        entries: [
          { name: '.env', kind: 'file', size: 6 },
          { name: 'bin', kind: 'directory', size: null },
          { name: 'link', kind: 'link', size: null },
        ],
      })
      for (const path of ['.env', 'link', outside])
        expect({ path, ...(await program.failure('read', { path })) }).toMatchObject({
          code: 'DENIED',
          retry: false,
          permission: expect.stringMatching(
            path === '.env' ? /files\.deny/ : /^pen grant .*notes\.txt --for 1h$/,
          ),
        })
      expect(denied(place, 'file-denied')).toHaveLength(3)
      expect(await program.failure('read', { path: 'absent' })).toMatchObject({ code: 'NOT_FOUND' })
      expect(await program.failure('read', { path: 'bin' })).toMatchObject({
        what: expect.stringContaining('is a directory'),
      })
      expect(await program.failure('delete', { path: 'bin', options: { recursive: true } })).toMatchObject({
        code: 'DENIED',
      })
      await program.ask('delete', { path: 'bin/tool' })
      await program.ask('delete', { path: 'bin' })
      expect(existsSync(join(place.project, 'bin'))).toBe(false)
      expect(await program.ask('request', { wanted: { path: outside } })).toMatchObject({ granted: false })
      await program.ask('grant', { path: outside })
      expect(await program.ask('request', { wanted: { path: outside } })).toMatchObject({ granted: true })
      expect(await program.ask('read', { path: 'link' })).toBe('buy milk')
      await program.ask('revoke', { path: outside })
      expect(await program.failure('read', { path: outside })).toMatchObject({ code: 'DENIED' })
      expect(readFileSync(outside, 'utf8')).toBe('buy milk')
      await program.ask('stop')
    })
  },
)

onGrounds(SOFT, 'searches readable files, and an endless expression blocks no other call', async place => {
  place.file('src/a.ts', 'one\nneedle two\n')
  place.file('src/b.md', 'needle')
  place.file('.env', 'needle')
  place.file('node_modules/x/a.ts', 'needle')
  place.file('long.txt', 'a'.repeat(3000))
  await withProgram(place, 'node', async program => {
    await program.ask('start', start(place, { exec: { timeout: '1s', ceiling: '1s' } }))
    const search = async (pattern: string, options: object = {}) =>
      (await program.ask('search', { pattern, options })).matches.map(
        ({ path, line }) => `${path.slice(place.project.length + 1)}:${line}`,
      )
    expect(await search('needle')).toEqual(['src/a.ts:2', 'src/b.md:1'])
    expect(denied(place, 'file-denied')).toMatchObject([{ path: join(place.project, '.env'), soft: true }])
    expect(await search('NEEDLE', { ignoreCase: true, name: '*.ts' })).toEqual(['src/a.ts:2'])
    expect(await search('', { name: 's?c/*.md' })).toEqual(['src/b.md:0'])
    expect(await program.ask('search', { pattern: 'n', options: { maxMatches: 1 } })).toMatchObject({
      more: true,
    })
    expect(await program.failure('search', { pattern: '(' })).toMatchObject({ code: 'FILE_REFUSED' })
    expect(await program.failure('search', { pattern: 'x', options: { path: place.home } })).toMatchObject({
      code: 'DENIED',
    })
    const endless = program.failure('search', { pattern: 'a*a*a*a*a*a*a*a*b' })
    expect(place.pen('status').code).toBe(0)
    expect(await endless).toMatchObject({ code: 'LIMIT' })
    expect(await search('needle')).toHaveLength(2)
    await program.ask('stop')
  })
})

onGrounds(
  SOFT,
  'pen mcp serves it when its flags name it, and passes the gate’s answer to a model',
  async place => {
    place.file('.env', 'SECRET')
    const flags = ['--isolation', 'soft', '--offline', ...accepting(GAPS)]
    const project = ['--project', place.project]
    await withClient(place, { flags: [...project, ...flags.slice(0, -2)] }, async client => {
      const { failed, facts } = await client.call('list_files')
      expect({ failed, facts }).toMatchObject({ failed: true, facts: { error: { code: 'GAP' } } })
    })
    await withClient(place, { flags: [...project, ...flags] }, async client => {
      expect(await client.call('write_file', { path: 'a.txt', content: 'needle' })).toMatchObject({
        failed: false,
      })
      expect((await client.call('search_files', { pattern: 'needle' })).texts[1]).toContain('a.txt:1: needle')
      expect((await client.call('read_file', { path: '.env' })).texts[0]).toContain(
        'files.deny .env* covers it',
      )
      for (const given of [{ command: 'cat .env' }, { argv: ['cat', '.env'] }]) {
        const { texts, facts } = await client.call('run', given)
        expect(facts).toMatchObject({ exitCode: 126, denials: [{ kind: 'tool' }] })
        expect(texts.join('')).not.toContain('SECRET')
      }
      expect(await client.call('delete_file', { path: 'a.txt' })).toMatchObject({ failed: false })
      expect(existsSync(join(place.project, 'a.txt'))).toBe(false)
    })
    await until(() => !place.isRunning())
  },
)
