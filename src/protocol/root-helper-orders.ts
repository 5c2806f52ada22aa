/**
 * Orders from a supervisor without root to its root helper (see backend/container/root-helper/). Each order has its own
 * channel, and gets one answer. Both ends are pen, and both are trusted. Descriptors of an order are sent before it,
 * over a second socket.
 */
import { toText } from './fields.ts'
import { encodeFrame, type Frame, FrameDecoder } from './frame.ts'

/** The word after `pen`. The directory with the two sockets follows. */
export const ROOT_HELPER_MODE = '__root-helper'
export const ROOT_HELPER_SOCKETS = { orders: 'orders', descriptors: 'descriptors' } as const

export type RootHelperOrder =
  /** Enter the supervisor's mount namespace, at its root directory. These are the two descriptors. */
  | { readonly do: 'enter-host' }
  /** Starts a program of the host, with the descriptors from 3 on. */
  | {
      readonly do: 'run'
      readonly argv: readonly string[]
      readonly input: string
      readonly timeoutMs: number
    }
  /** Lists the datagrams that the rules of a namespace refused. The descriptor is a socket of that namespace. */
  | { readonly do: 'list-refused' }
  /** Does nothing when the pid was reused. */
  | { readonly do: 'kill'; readonly pid: number; readonly startTime: string }
  | { readonly do: 'bound-processes'; readonly pid: number; readonly pids: number }

export type RootHelperRequest = RootHelperOrder & { readonly descriptors: number }

export type RootHelperAnswer = { readonly done: unknown } | { readonly failed: string }

const MESSAGE = 1

export const encodeMessage = (channel: number, message: RootHelperRequest | RootHelperAnswer): Uint8Array =>
  encodeFrame(MESSAGE, channel, toText(message))

/** `T` is what the other end sends. */
export class MessageReader<T extends RootHelperRequest | RootHelperAnswer> {
  readonly #frames = new FrameDecoder(new Set([MESSAGE]))

  push(bytes: Uint8Array): { readonly channel: number; readonly message: T }[] {
    const read = ({ channel, payload }: Frame) => ({
      channel,
      message: JSON.parse(new TextDecoder().decode(payload)) as T,
    })
    return Array.from(this.#frames.push(bytes), read)
  }
}
