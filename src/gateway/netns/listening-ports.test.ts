import { expect, test } from 'bun:test'
import { listeningPorts } from './listening-ports.ts'

test('listeners of this namespace are found, also with IPv6, and other sockets are not', async () => {
  const servers = ['127.0.0.1', '::'].map(hostname =>
    Bun.listen({ hostname, port: 0, socket: { data() {} } }),
  )
  const [one, other] = servers.map(({ port }) => port)
  try {
    const client = await Bun.connect({ hostname: '127.0.0.1', port: one ?? 0, socket: { data() {} } })
    const ports = listeningPorts(process.pid)
    // More than 32 programs may listen on this machine.
    if (ports.length < 32) expect(ports).toEqual(expect.arrayContaining([one, other]))
    expect(ports).not.toContain(client.localPort)
    expect(ports.length).toBeLessThanOrEqual(32)
    client.end()
  } finally {
    for (const server of servers) server.stop(true)
  }
  expect(listeningPorts(2 ** 22 + 1)).toEqual([])
})
