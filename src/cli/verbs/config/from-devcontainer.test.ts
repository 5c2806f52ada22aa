import { expect, test } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { temporaryProject } from '../../../../test/temporary-project.ts'

const MAIN = join(import.meta.dir, '../../../main.ts')

test('pen init --from-devcontainer writes a proposal that takes effect when the user applies it', () => {
  using project = temporaryProject()
  const pen = (...args: string[]) => {
    const env = { HOME: project.home, PATH: process.env['PATH'] }
    const ran = spawnSync(process.execPath, [MAIN, ...args], {
      cwd: project.workspace,
      env,
      encoding: 'utf8',
    })
    return { code: ran.status, said: `${ran.stdout}${ran.stderr}` }
  }
  expect(pen('init', '--from-devcontainer').said).toContain('has no devcontainer.json')
  // A link could show a file of the home.
  project.write('other.json', '{}')
  symlinkSync('other.json', join(project.workspace, '.devcontainer.json'))
  expect(pen('init', '--from-devcontainer').said).toContain('has no devcontainer.json')
  rmSync(join(project.workspace, '.devcontainer.json'))

  project.write(
    '.devcontainer/devcontainer.json',
    '{ // mine\n "image": "debian:12", "forwardPorts": [3000], "runArgs": [], "postCreateCommand": "make é", }',
  )
  const { code, said } = pen('init', '--from-devcontainer')
  expect([code, said]).toEqual([0, expect.stringContaining('it is not active; fix: pen config diff')])
  for (const line of ['taken: forwardPorts: port 3000', 'not taken: runArgs:', 'postCreateCommand yourself'])
    expect(said).toContain(line)
  const text = readFileSync(join(project.workspace, '.pen/config.json'), 'utf8')
  expect(JSON.parse(text)).toMatchObject({
    profile: 'coding',
    image: { args: { BASE: 'debian:12' } },
    ports: [{ guest: 3000, host: 3000 }],
  })
  expect(existsSync(join(project.stateDir, 'config.json'))).toBe(false)
  const [, digest = ''] = /(sha256:[0-9a-f]{64})/.exec(pen('config', 'diff').said) ?? []
  expect(pen('config', 'apply', '--yes', '--expect', digest)).toMatchObject({ code: 0 })
  expect(readFileSync(join(project.stateDir, 'config.json'), 'utf8')).toBe(text)
  expect(pen('init', '--from-devcontainer')).toMatchObject({
    code: 125,
    said: expect.stringContaining('already has a config'),
  })
})
