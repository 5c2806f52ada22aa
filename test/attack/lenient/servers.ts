/** Real HTTP servers that accept what RFC 9112 forbids. Each answers with the host that it read. */
import { connect } from 'node:net'
import { join } from 'node:path'

export class LenientServer {
  readonly name: string
  readonly port: number
  readonly #child: Bun.Subprocess

  private constructor(name: string, port: number, child: Bun.Subprocess) {
    this.name = name
    this.port = port
    this.#child = child
  }

  static async start(name: string, argv: readonly string[], port = /port=(\d+)\n/): Promise<LenientServer> {
    const child = Bun.spawn([...argv], {
      cwd: import.meta.dir,
      env: { PATH: process.env['PATH'], PYTHONDONTWRITEBYTECODE: '1' },
      stdin: 'ignore',
      stdout: 'pipe',
      stderr: 'ignore',
    })
    let text = ''
    for await (const chunk of child.stdout) {
      text += Buffer.from(chunk).toString()
      const [, found] = port.exec(text) ?? []
      if (found !== undefined) return new LenientServer(name, Number(found), child)
    }
    throw new Error(`${name} did not start: ${text}`)
  }

  /** The server's answers to these bytes, up to the first for evil.test. Nothing when the server waits for more. */
  ask(bytes: string): Promise<string> {
    return new Promise(resolve => {
      let text = ''
      const socket = connect({ host: '127.0.0.1', port: this.port })
      const timer = setTimeout(() => socket.destroy(), 400)
      socket.on('data', data => {
        text += data.toString('latin1')
        if (text.includes('evil')) socket.destroy()
      })
      socket.on('error', () => undefined)
      socket.on('close', () => {
        clearTimeout(timer)
        resolve(text)
      })
      socket.write(bytes, 'latin1')
    })
  }

  async stop(): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#child.exited
  }
}

/** It ends by itself when the tests were killed and nothing asks any more. */
const UWSGI =
  'exec uwsgi --idle 120 --die-on-idle --plugin python3 --threads 24 --need-app --http-socket 127.0.0.1:0 --wsgi-file lenient.py 2>&1'

export const startLenientServers = (): Promise<LenientServer[]> =>
  Promise.all([
    LenientServer.start('uWSGI', ['sh', '-c', UWSGI], /127\.0\.0\.1:(\d+)[\s\S]*spawned uWSGI/),
    LenientServer.start('Java', ['java', join(import.meta.dir, 'Lenient.java')]),
    LenientServer.start('wsgiref', ['/usr/bin/python3', 'lenient.py', 'wsgiref']),
    LenientServer.start('http.server', ['/usr/bin/python3', 'lenient.py', 'http.server']),
    LenientServer.start('Node', ['node', 'lenient.mjs']),
  ])
