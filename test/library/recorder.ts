/** A service on the host's loopback that records its clients. */
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export class Recorder {
  readonly #server: Server
  readonly seen: string[] = []
  /** Of the same requests. */
  readonly fields: IncomingHttpHeaders[] = []

  private constructor() {
    this.#server = createServer((request, response) => {
      this.seen.push(request.url ?? '')
      this.fields.push(request.headers)
      const echo = request.headers['x-api-key']
      response.end(`reached\n${echo === undefined ? '' : `by ${String(echo)}\n`}`)
    })
  }

  static async open(): Promise<Recorder> {
    const recorder = new Recorder()
    await new Promise<void>(resolve => recorder.#server.listen(0, '127.0.0.1', () => resolve()))
    return recorder
  }

  /** As a rule names it, and as the sandbox dials it. */
  get target(): string {
    return `host.pen.internal:${(this.#server.address() as AddressInfo).port}`
  }

  close(): void {
    this.#server.closeAllConnections()
    this.#server.close()
  }
}

/** With nothing but bash: an image may have no more. */
export function fetchScript(target: string, path: string): string {
  const [host, port] = target.split(':')
  return `exec 3<>/dev/tcp/${host}/${port} && printf 'GET ${path} HTTP/1.0\\r\\nHost: ${target}\\r\\n\\r\\n' >&3 && cat <&3`
}
