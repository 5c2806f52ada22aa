/** A listener on loopback with the gateway's own socket type. */
export {
  type Listening as Listener,
  listenLoopback as listenHere,
} from '../../src/gateway/dial/tcp-connect.ts'

/** Default handlers for a test that only answers. */
export const silent = { data: () => {}, end: () => {}, drain: () => {}, close: () => {} }
