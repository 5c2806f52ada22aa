import { number, type Tool, text } from './tool.ts'

const LONGEST_SECONDS = 300

/** It asks. Only the user's own commands on the host grant anything: no answer can be given through the client. */
export const permissionTool: Tool = {
  name: 'request_permission',
  title: 'Ask the user for a permission',
  description:
    'Asks the user to let the sandbox connect to a host, or to read or write a file outside of the project. Returns at once what the user has to run, or with wait_seconds after the user has answered. Say why you need it.',
  properties: {
    host: { type: 'string', description: 'a host with its port, as registry.example.com:443' },
    path: { type: 'string', description: 'or a file or directory of the host, by its absolute path' },
    write: { type: 'boolean', description: 'for a path: also to write it' },
    reason: { type: 'string', description: 'what it is needed for' },
    wait_seconds: {
      type: 'number',
      description: 'how long the answer is waited for',
      minimum: 0,
      maximum: LONGEST_SECONDS,
    },
  },
  required: [],
  either: ['host', 'path'],
  output: {
    granted: { type: 'boolean' },
    permission: { type: ['string', 'null'], description: 'what the user runs on the host to grant it' },
    why: { type: ['string', 'null'], description: 'why it is not granted' },
  },
  effect: { readOnly: true, destructive: false, idempotent: true, openWorld: false },
  async run(box, given, { signal, report }) {
    report('waiting for the user')
    const answer = await box.requestPermission(
      { host: text(given, 'host'), path: text(given, 'path'), rw: given['write'] === true },
      { wait: (number(given, 'wait_seconds') ?? 0) * 1000, signal },
    )
    const { granted, permission, why } = answer
    const told = granted
      ? 'granted: go on'
      : `not granted: ${why ?? 'nobody answered'}\n${permission === null ? '' : `Tell the user what you need it for, and that this command on the host gives it: ${permission}\nIf the user is slow, ask again with wait_seconds.`}`
    return { texts: [told.trimEnd()], facts: { ...answer }, failed: !granted }
  },
}
