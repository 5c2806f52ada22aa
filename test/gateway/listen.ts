/** A listener on loopback whose connections are the gateway's own kind of socket. */
export {
  type Listening as Listener,
  listenLoopback as listenHere,
} from '../../src/gateway/dial/tcp-connect.ts'

/** What a test that only answers wants to hear. */
export const silent = { data: () => {}, end: () => {}, drain: () => {}, close: () => {} }
