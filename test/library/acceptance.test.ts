/**
 * The four acceptance tests of a secure agent (secrets, writes outside, network, tools), each by the library, by MCP and by the
 * command line: whichever way a model gets at a sandbox, it meets the same walls, and each wall has a door that the policy opens.
 */
import { expect } from 'bun:test'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { withClient } from './mcp-client.ts'
import { onEachGround, onPodman, type Place } from './place.ts'
import { withProgram } from './program.ts'
import { fetchScript, quote, Recorder } from './recorder.ts'

interface Ran {
  readonly code: number
  readonly out: string
}

/** One way into the sandbox of a project. Commands are words for no shell. */
type Sh = (script: string) => Promise<Ran>
type Way = (place: Place, body: (sh: Sh) => Promise<void>) => Promise<void>

const WAYS: Readonly<Record<string, Way>> = {
  'by the library': (place, body) =>
    withProgram(place, 'node', async program => {
      await program.ask('start', { project: place.project })
      await body(async script => {
        const { exitCode, stdout, stderr } = await program.exec(['bash', '-c', script])
        return { code: exitCode, out: `${stdout}${stderr}` }
      })
      await program.ask('stop')
    }),
  'by MCP': (place, body) =>
    withClient(place, [], client =>
      body(async script => {
        const { facts, texts } = await client.call('run', { command: `bash -c ${quote(script)}` })
        return { code: Number(facts['exitCode']), out: texts.slice(1).join('\n') }
      }),
    ),
  'by the command line': async (place, body) => {
    expect(place.pen('start', '--detach')).toMatchObject({ code: 0 })
    await body(async script => {
      const { code, said } = await place.penBeside('exec', '--', 'bash', '-c', script)
      return { code, out: said }
    })
    place.pen('stop')
  },
}

onEachGround(
  'P1 P2 P6 secrets are not read, nothing is written outside, no host is reached, each by every way in',
  async place => {
    const key = place.file(join(place.home, '.ssh/id_ed25519'), 'KEY OF THE HOST')
    place.file('.env', 'SECRET OF THE PROJECT')
    place.file('open.txt', 'for everybody')
    place.file('.git/hooks/sample', '')
    place.configure()
    const recorder = await Recorder.open()
    try {
      for (const [name, way] of Object.entries(WAYS))
        await way(place, async sh => {
          const told = (ran: Ran) => ({ name, ...ran })
          const reads = await sh(`cat ${key} .env; cat open.txt`)
          expect(told(reads)).toMatchObject({ code: 0, out: expect.stringContaining('for everybody') })
          expect(reads.out).not.toMatch(/KEY OF|SECRET OF/)

          const outside = join(place.home, 'planted')
          await sh(
            `echo x > ${outside}; echo x > ${place.root}/planted; echo x > .git/hooks/pre-commit; echo ${name.length} > inside.txt`,
          )
          expect(
            [outside, `${place.root}/planted`, join(place.project, '.git/hooks/pre-commit')].filter(path =>
              existsSync(path),
            ),
          ).toEqual([])
          expect(readFileSync(join(place.project, 'inside.txt'), 'utf8')).toBe(`${name.length}\n`)

          const dial = (path: string) => sh(fetchScript(recorder.target, path))
          await dial('/refused')
          expect(recorder.seen).toEqual([])
          expect(place.pen('allow', recorder.target, '--once')).toMatchObject({ code: 0 })
          for (const late = performance.now() + 10_000; !(await dial('/allowed')).out.includes('reached'); )
            if (performance.now() > late) throw new Error(`${name}: not reached`)
          expect(recorder.seen.splice(0)).toEqual(['/allowed'])
        })
      const denied = place.audit().filter(({ kind }) => kind === 'connection-denied')
      expect(denied.length).toBeGreaterThanOrEqual(3)
    } finally {
      recorder.close()
    }
  },
)

/** Where commands of a sandbox that stays can be held to it, nothing else is executed either. */
const listed = ({ ground }: Place) => ({
  network: { offline: true },
  tools: {
    allow: ['bash', 'cat', 'sh'],
    shell: true,
    exec: ground.backend === 'podman' ? 'listed' : 'any',
  },
})

onEachGround(
  'P20 a tool that the policy does not list is not run, by every way in, and one that it lists is',
  async place => {
    place.configure(listed(place))
    place.file('open.txt', 'for everybody')
    for (const [name, way] of Object.entries(WAYS))
      await way(place, async sh => {
        expect({ name, ...(await sh('cat open.txt')) }).toEqual({
          name,
          code: 0,
          out: expect.stringContaining('for everybody'),
        })
        for (const tool of ['head', '/usr/bin/head', 'env', 'perl'])
          expect({ name, tool, code: (await sh(`${tool} open.txt`)).code }).toEqual({ name, tool, code: 127 })
      })
    await withProgram(place, 'node', async program => {
      await program.ask('start', { project: place.project })
      // The library says that it was the policy; its own tool for files needs none of the listed.
      expect(await program.exec(['head', 'open.txt'])).toMatchObject({
        exitCode: 127,
        denials: [{ kind: 'tool', target: 'head', reason: 'not-listed' }],
      })
      expect(await program.ask('read', { path: 'open.txt' })).toBe('for everybody')
      await program.ask('stop')
    })
  },
)

onPodman(
  'P1 files in a container are read and written by the library as the container has them',
  async place => {
    place.configure({ network: { offline: true } })
    place.file('.env', 'SECRET OF THE PROJECT')
    const notes = place.file(join(place.home, 'notes.txt'), 'buy milk')
    await withProgram(place, 'node', async program => {
      await program.ask('start', { project: place.project })
      await program.ask('write', { path: 'made.txt', content: 'new' })
      expect(readFileSync(join(place.project, 'made.txt'), 'utf8')).toBe('new')
      expect(await program.ask('read', { path: 'made.txt' })).toBe('new')
      expect(await program.failure('read', { path: '.env' })).toMatchObject({ code: 'DENIED' })
      expect(await program.failure('read', { path: notes })).toMatchObject({ code: 'DENIED' })
      await program.ask('grant', { path: notes })
      expect(await program.ask('read', { path: notes })).toBe('buy milk')
      await program.ask('stop')
    })
  },
)
