/** Tells a client that asked for it that a call goes on: some give up on one that is silent. */
import type { ProgressToken } from '@modelcontextprotocol/sdk/types.js'

const EVERY_MS = 2000

interface ProgressNotification {
  readonly method: 'notifications/progress'
  readonly params: { progressToken: ProgressToken; progress: number; message: string }
}

export class Progress {
  message = 'starting'
  readonly #timer: ReturnType<typeof setInterval> | undefined
  readonly #began = performance.now()

  /** Without a token nobody asked. */
  constructor(token: ProgressToken | undefined, send: (notification: ProgressNotification) => Promise<void>) {
    if (token === undefined) return
    this.#timer = setInterval(() => {
      const seconds = Math.round((performance.now() - this.#began) / 100) / 10
      const params = { progressToken: token, progress: seconds, message: `${this.message} (${seconds} s)` }
      // A client that is gone is noticed elsewhere.
      send({ method: 'notifications/progress', params }).catch(() => undefined)
    }, EVERY_MS)
  }

  /** Before the answer: the protocol has no progress after it. */
  end(): void {
    clearInterval(this.#timer)
  }
}
