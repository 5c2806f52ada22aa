import { Duplex } from 'node:stream'

/** stdin and stdout of this process as one stream, for ssh2. */
export class StandardStreams extends Duplex {
  /** Resolves when the client has hung up, or everything was sent to it. */
  readonly ended: Promise<void>

  constructor() {
    super({ allowHalfOpen: false })
    this.ended = new Promise(resolve => this.once('close', resolve))
    process.stdin.on('data', bytes => {
      if (!this.push(bytes)) process.stdin.pause()
    })
    process.stdin.on('end', () => this.destroy())
    process.stdin.on('error', () => this.destroy())
    process.stdout.on('error', () => this.destroy())
  }

  override _read(): void {
    process.stdin.resume()
  }

  override _write(bytes: Buffer, _: BufferEncoding, done: (error?: Error | null) => void): void {
    process.stdout.write(bytes, done)
  }

  override _final(done: () => void): void {
    done()
    this.destroy()
  }
}
