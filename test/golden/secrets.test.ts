/** pen prints no secret: canaries are planted where people put secrets, and all output is searched. */
import { describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { temporaryProject } from '../temporary-project.ts'

const MAIN = join(import.meta.dir, '../../src/main.ts')
const CONFIG = {
  env: { API_KEY: 'canary-config', PASSED: { from: 'host' } },
  network: {
    http: ['api.example.com'],
    upstreamProxy: 'http://canary-user:canary-pass@proxy.example.com:3128/canary',
  },
  image: { dockerfile: 'Dockerfile', args: { TOKEN: 'canary-argument' } },
}

function pen(config: object, ...args: string[]): { code: number; output: string } {
  using project = temporaryProject()
  project.writeLive('config.json', JSON.stringify(config))
  project.write('.pen/config.json', '{"version":1,"env":{"API_KEY":"another"}}')
  const { stdout, stderr, exitCode } = Bun.spawnSync([process.execPath, MAIN, ...args], {
    cwd: project.workspace,
    env: {
      HOME: project.home,
      PATH: process.env['PATH'],
      BUN_RUNTIME_TRANSPILER_CACHE_PATH: '0',
      PASSED: 'canary-passed',
      ANTHROPIC_API_KEY: 'canary-key',
      ANTHROPIC_BASE_URL: 'https://canary@api.example.com/canary',
      AWS_SECRET_ACCESS_KEY: 'canary-not-granted',
      HTTPS_PROXY: 'http://canary:canary@proxy.example.com',
    },
  })
  return { code: exitCode, output: stdout.toString() + stderr.toString() }
}

describe('no secret is printed', () => {
  test.each([
    [0, ['plan', '--env', 'FLAG=canary-flag', '--', 'true']],
    [0, ['plan', '--json', '--env', 'FLAG=canary-flag', '--', 'true']],
    [0, ['policy', 'explain', 'api.example.com:443']],
    [0, ['policy', 'explain', 'api.example.com:443', '--json']],
    [1, ['policy', 'explain', '/data', '--env', 'FLAG=canary-flag']],
    [0, ['agent', 'claude-code', '--dry-run-policy']],
    [0, ['agent', 'claude-code', '--dry-run-policy', '--json']],
    [0, ['config', 'show']],
    [0, ['config', 'show', '--json']],
    [1, ['config', 'diff']],
    [1, ['config', 'diff', '--json']],
    [1, ['config', 'apply']],
    [0, ['config', 'set', 'limits.pids', '9']],
    [2, ['config', 'backup']],
    [2, ['plan', '--env', '1BAD=canary-flag']],
    [2, ['plan', '--env', 'PEN_X=canary-flag', '--json']],
  ] as const)('exit %d: pen %j', (code, args) => {
    const run = pen(CONFIG, ...args)
    expect(run.code).toBe(code)
    expect(run.output).not.toBe('')
    expect(run.output).not.toContain('canary')
  })

  test.each([
    { env: { TOKEN: ['canary'] } },
    { env: { TOKEN: { from: 'canary' } } },
    { env: { TOKEN: 'canary\0' } },
    { network: { upstreamProxy: 'ftp://u:canary@proxy.example.com' } },
    { network: { upstreamProxy: ['http://u:canary@proxy.example.com'] } },
    { image: { args: { TOKEN: ['canary'] } } },
  ])('in the error about %j', config => {
    for (const args of [['plan'], ['plan', '--json']]) {
      const run = pen(config, ...args)
      expect([run.code, run.output.includes('canary')]).toEqual([2, false])
    }
  })
})
