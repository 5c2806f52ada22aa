/**
 * The servers of the test's world: `outside`, where every address is ours, and `host`, where they stand for
 * services of pen's machine. Each logs what it receives. Arguments: which of the two, the directory.
 */
import { appendFileSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer as createHttp, type IncomingMessage, type ServerResponse } from 'node:http'
import { createSecureServer, type ServerHttp2Stream } from 'node:http2'
import { createServer as createHttps } from 'node:https'
import { createServer as createTcp, type Server } from 'node:net'
import { join, normalize } from 'node:path'
import { DnsServer } from '../../gateway/dns-server.ts'
import { serveAws } from './serve-aws.ts'
import { serveGit } from './serve-git.ts'
import { serveSignIn } from './serve-sign-in.ts'
import { ZONES } from './zones.ts'

const [role = '', dir = ''] = process.argv.slice(2)
const write = (file: string, line: string): void => appendFileSync(join(dir, file), `${line}\n`)
const plain = (address = ''): string => address.replace(/^::ffff:/, '')

/** Files below `www`, an echo of the request, and a few ways to misbehave. */
function serve(request: IncomingMessage, response: ServerResponse): void {
  const { socket, method, url = '/', headers } = request
  const here = `${plain(socket.localAddress)} ${socket.localPort}`
  write(`${role}.log`, `request ${here} ${method} ${headers.host ?? '-'} ${url}`)
  for (const name of ['x-api-key', 'authorization', 'x-goog-api-key'])
    if (headers[name] !== undefined) write(`${role}.log`, `field ${name} ${headers[name]}`)
  if (headers.host?.endsWith('.amazonaws.com')) {
    void serveAws(request, response, line => write(`${role}.log`, line))
    return
  }
  if (serveSignIn(request, response, line => write(`${role}.log`, line))) return
  if (url.startsWith('/echo')) {
    response.setHeader('x-echo', String(headers['x-api-key'] ?? ''))
    response.end(`${JSON.stringify(headers)}\n`)
    return
  }
  if (url === '/redirect') {
    response.writeHead(302, { location: String(headers['x-where'] ?? 'http://evil.test/') }).end()
    return
  }
  if (url === '/trickle') {
    response.write('first\n')
    const timer = setInterval(() => response.write('more\n'), 50)
    response.on('close', () => clearInterval(timer))
    return
  }
  if (url.startsWith('/git/')) {
    serveGit(request, response, join(dir, 'www'))
    return
  }
  if (url.startsWith('/files/private/') && headers.authorization === undefined) {
    response.writeHead(401, { 'www-authenticate': 'Basic realm="test"' }).end()
    return
  }
  if (url.startsWith('/files/')) {
    try {
      const path = normalize(decodeURI(url.slice(6).replace(/\?.*/, '')))
      const file = path.endsWith('/') ? `${path}index.html` : path
      const text = readFileSync(join(dir, 'www', file))
      if (file.endsWith('.html')) response.setHeader('content-type', 'text/html')
      response.end(text)
    } catch {
      response.writeHead(404).end('no such file\n')
    }
    return
  }
  request.resume()
  response.end(`hello from ${here}\n`)
}

/** The server speaks first, then echoes everything. */
function echo(): Server {
  return createTcp(socket => {
    const here = `${plain(socket.localAddress)} ${socket.localPort}`
    write(`${role}.log`, `accept ${here}`)
    socket.on('error', () => undefined)
    socket.write(`welcome to ${here}\n`)
    socket.on('data', chunk => {
      write(`${role}.log`, `bytes ${here} ${chunk.length}`)
      socket.write(chunk)
    })
  })
}

/** Answers every call of gRPC with a message of five bytes. */
function grpc(tls: { readonly key: Buffer; readonly cert: Buffer }): Server {
  const server = createSecureServer({ ...tls, allowHTTP1: false })
  server.on('stream', (stream: ServerHttp2Stream, headers) => {
    write(`${role}.log`, `grpc ${headers[':path']} ${headers['x-api-key'] ?? '-'}`)
    stream.on('error', () => undefined)
    stream.respond({ ':status': 200, 'content-type': 'application/grpc' }, { waitForTrailers: true })
    stream.on('wantTrailers', () => stream.sendTrailers({ 'grpc-status': '0' }))
    stream.end(Buffer.from([0, 0, 0, 0, 5, ...Buffer.from('hello')]))
  })
  return server as unknown as Server
}

const listen = (server: Server, port: number, host: string): Promise<void> =>
  new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ port, host, backlog: 2048 }, () => resolve())
  })

async function openOutside(): Promise<void> {
  for await (const line of console) if (line === 'go') break
  const tls = { key: readFileSync(join(dir, 'key.pem')), cert: readFileSync(join(dir, 'cert.pem')) }
  for (const port of [80, 8080, 53, 853]) await listen(createHttp(serve), port, '::')
  for (const port of [443, 8443]) await listen(createHttps(tls, serve), port, '::')
  await listen(grpc(tls), 8444, '::')
  for (const port of [7, 25, 2222]) await listen(echo(), port, '::')
  const dns = await DnsServer.start(ZONES, { port: 53, address: '0.0.0.0' })
  dns.onQuestion = name => write('dns.log', name)
}

async function openHost(): Promise<void> {
  for (const host of ['127.0.0.1', '::1']) await listen(createHttp(serve), 8099, host)
  for (const port of [80, 8098]) await listen(createHttp(serve), port, '::')
  await listen(echo(), 7, '127.0.0.1')
}

await (role === 'outside' ? openOutside() : openHost())
writeFileSync(join(dir, `${role}.ready`), '')
// The shell that started this ends it. If that fails, `timeout` does.
setInterval(() => undefined, 60_000)
