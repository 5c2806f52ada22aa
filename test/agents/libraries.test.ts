/** Libraries for Node.js that bring their own HTTP, in a sandbox that opens TLS: they trust pen and reach the server. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { runSteps } from '../conformance/network/steps.ts'
import { forEachKind } from '../conformance/network/world.ts'

const PACKAGES = join(import.meta.dir, 'node_modules')
const KEY = 'key-0123456789-abcdefghij'

const UNDICI = `const { request } = require('${PACKAGES}/undici')
request('https://allowed.test/undici', { headers: { 'x-api-key': process.env.API_KEY } })
  .then(async ({ body }) => console.log(await body.text()))`

const GRPC = `const grpc = require('${PACKAGES}/@grpc/grpc-js')
const fields = new grpc.Metadata()
fields.set('x-api-key', process.env.API_KEY)
const client = new grpc.Client('allowed.test:8444', grpc.credentials.createSsl())
const text = { from: bytes => bytes, to: text => Buffer.from(text) }
client.makeUnaryRequest('/test.Echo/Say', text.to, text.from, 'hi', fields, (error, answer) => {
  console.log(error ? error.message : answer.toString())
  client.close()
})`

/** gRPC's core, which Python, C++, Ruby and PHP use. It has a list of authorities of its own. */
const CORE = `import grpc, os
channel = grpc.secure_channel('allowed.test:8444', grpc.ssl_channel_credentials())
say = channel.unary_unary('/test.Echo/Core')
print(say(b'hi', metadata=[('x-api-key', os.environ['API_KEY'])], timeout=20).decode())`
const hasCore = spawnSync('/usr/bin/python3', ['-c', 'import grpc']).status === 0

forEachKind(
  'P22 undici and gRPC use a key that is not inside, without any setting',
  async (world, project) => {
    const to = ['allowed.test:443', 'allowed.test:8444']
    const secret = { name: 'API_KEY', from: { env: 'HOST_KEY' }, to, in: ['header:x-api-key'] }
    project.writeLive('config.json', JSON.stringify({ version: 1, network: { http: to }, secrets: [secret] }))
    project.write('undici.cjs', UNDICI)
    project.write('grpc.cjs', GRPC)
    project.write('core.py', CORE)
    const heard = world.listen()
    const { steps } = await runSteps(
      project,
      {
        undici: 'node undici.cjs',
        grpc: 'node grpc.cjs',
        core: hasCore ? '/usr/bin/python3 core.py' : 'true',
      },
      { env: { HOST_KEY: KEY }, flags: ['--read', PACKAGES] },
    )
    expect([steps.undici.said, steps.grpc.said]).toEqual([expect.stringContaining('hello from'), 'hello\n'])
    expect(heard.requests).toContain(`field x-api-key ${KEY}`)
    expect(heard.requests).toContain(`grpc /test.Echo/Say ${KEY}`)
    if (hasCore) expect(steps.core.said).toBe('hello\n')
    if (hasCore) expect(heard.requests).toContain(`grpc /test.Echo/Core ${KEY}`)
  },
  { users: 'ordinary', needs: join(PACKAGES, '@grpc/grpc-js') },
)
