/**
 * What a supervisor without root has done by its helper (see backend/container/root-helper/): each order on a channel of its own, answered once. Both ends are
 * pen, and nothing hostile holds either. Descriptors that belong to an order were sent before it, over a socket beside.
 */
import { encodeFrame, type Frame, FrameDecoder } from './frame.ts'

/** The word after `pen`, and behind it the directory with the two sockets. */
export const ROOT_HELPER_MODE = '__root-helper'
export const ROOT_HELPER_SOCKETS = { orders: 'orders', descriptors: 'descriptors' } as const

export type RootHelperOrder =
  /** To be in the supervisor's mount namespace from now on, at its root directory: these two descriptors. */
  | { readonly do: 'come' }
  /** Starts a program of the host, with the descriptors from 3 on. */
  | {
      readonly do: 'run'
      readonly argv: readonly string[]
      readonly input: string
      readonly timeoutMs: number
    }
  /** Which datagrams the rules of a namespace refused: the descriptor is the socket that asks. */
  | { readonly do: 'list-refused' }
  /** Unless the number is another process's by now. */
  | { readonly do: 'kill'; readonly pid: number; readonly startTime: string }
  | { readonly do: 'bound-processes'; readonly pid: number; readonly pids: number }

export type RootHelperRequest = RootHelperOrder & { readonly descriptors: number }

export type RootHelperAnswer = { readonly done: unknown } | { readonly failed: string }

const MESSAGE = 1

export const encodeMessage = (channel: number, message: RootHelperRequest | RootHelperAnswer): Uint8Array =>
  encodeFrame(MESSAGE, channel, new TextEncoder().encode(JSON.stringify(message)))

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
