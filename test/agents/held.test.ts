/** `pen agent --ask`: the agent's request to its model waits for the user, and goes through after the user approves it. */
import { expect } from 'bun:test'
import { mkdirSync, realpathSync, symlinkSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { PRESETS } from '../../src/policy/presets.ts'
import { isReady, KINDS, World } from '../conformance/network/world.ts'
import { skipUnless } from '../skip.ts'
import { until } from '../until.ts'
import { missingAgents, PROGRAMS } from './programs.ts'
import { Tmux } from './tmux.ts'

const PORT = 8999
/** A name of the test's own network. No rule allows it. */
const TARGET = `allowed.test:${PORT}`

interface Agent {
  readonly name: keyof typeof PROGRAMS
  readonly protocol: string
  readonly words: readonly string[]
  readonly variables: Readonly<Record<string, string>>
  /** How the user approves the connection. */
  readonly by: 'pen allow' | 'pen watch'
}

const AGENTS: readonly Agent[] = [
  {
    name: 'claude-code',
    protocol: 'mock-anthropic.ts#ANTHROPIC',
    words: ['--dangerously-skip-permissions', '-p', 'do it'],
    variables: { ANTHROPIC_API_KEY: 'sk-test', ANTHROPIC_BASE_URL: `http://${TARGET}` },
    by: 'pen allow',
  },
  {
    name: 'codex',
    protocol: 'mock-openai.ts#OPENAI',
    words: ['exec', '--skip-git-repo-check', '--model', 'gpt-5', 'do it'],
    variables: { CODEX_API_KEY: 'sk-test', OPENAI_BASE_URL: `http://${TARGET}/v1` },
    by: 'pen watch',
  },
]

/** Outside the machine. It prints a line for each request. */
async function serveModel(world: World, protocol: string) {
  const [file = '', name = ''] = protocol.split('#')
  const script = `import { MockModel } from '${import.meta.dir}/mock-model.ts'
    import { ${name} } from '${import.meta.dir}/${file}'
    const model = MockModel.open(${name}, [{ say: 'all done' }], { hostname: '::', port: ${PORT} })
    console.log('up')
    let seen = 0
    setInterval(() => { for (; seen < model.requests.length; seen++) console.log('request') }, 20)`
  const server = Bun.spawn([...world.on('outside'), process.execPath, '-e', script], { stdout: 'pipe' })
  let heard = ''
  void (async () => {
    for await (const bytes of server.stdout) heard += Buffer.from(bytes).toString()
  })()
  await until(() => heard.startsWith('up'))
  return {
    requests: () => heard.split('request').length - 1,
    [Symbol.dispose]: () => server.kill('SIGKILL'),
  }
}

const define = skipUnless(
  isReady && missingAgents().length === 0,
  'the agents of test/agents are not installed, or there is no machine of namespaces',
)

for (const { name, protocol, words, variables, by } of AGENTS)
  define(
    `P15 with --ask the request of ${name} to its model waits, and goes through after a yes in ${by}`,
    async () => {
      const world = await World.get()
      const [kind] = KINDS.slice(-1)
      if (kind === undefined) throw new Error('no user to run it as')
      using project = world.project(kind)
      // Codex calls these beside its work. Only the model is to wait.
      project.writeLive('config.json', '{"version":1,"network":{"deny":["github.com","api.github.com"]}}')
      using model = await serveModel(world, protocol)
      const bin = join(project.root, 'bin')
      mkdirSync(bin, { mode: 0o755 })
      const program = realpathSync(PROGRAMS[name])
      symlinkSync(program, join(bin, PRESETS[name].command[0]))
      const set = {
        HOME: project.home,
        PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`,
        TERM: 'xterm',
        ...variables,
      }
      const inProject = [
        ...world.on('host', project.user),
        ...['env', '-i', '-C', project.workspace],
        ...Object.entries(set).map(([variable, value]) => `${variable}=${value}`),
        world.pen,
      ]
      const flags = ['--backend', 'process', '--ask', '--read', bin, '--read', dirname(program)]
      const agent = Bun.spawn([...inProject, 'agent', name, ...flags, '--', ...words], {
        stdin: 'ignore',
        stdout: 'pipe',
        stderr: 'pipe',
      })
      const output = Promise.all([new Response(agent.stdout).text(), new Response(agent.stderr).text()])
      let watch: Tmux | undefined
      try {
        await until(
          () => project.audit().some(record => record.kind === 'connection-held' && record.port === PORT),
          20_000,
        )
        expect(model.requests()).toBe(0)
        if (by === 'pen allow') expect(project.command(['allow', TARGET, '--session']).status).toBe(0)
        else {
          watch = new Tmux([...inProject, 'watch'], '/', { PATH: set.PATH })
          await watch.shows(`> ${TARGET}`)
          // A key that is typed as the list changes is not taken.
          await Bun.sleep(1500)
          watch.type('s')
        }
        const [stdout, stderr] = await output
        expect([await agent.exited, stderr]).toEqual([0, expect.stringContaining(`held: ${TARGET}`)])
        expect(stdout).toContain('all done')
        expect(model.requests()).toBeGreaterThan(0)
        expect(stderr).not.toContain(`refused: ${TARGET}`)
      } finally {
        watch?.close()
        agent.kill('SIGKILL')
      }
    },
    60_000,
  )
