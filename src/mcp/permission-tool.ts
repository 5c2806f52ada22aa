import { number, READS, type Tool, text } from './tool.ts'

const MAX_WAIT_SECONDS = 300

/** Asks the user. Only the user's commands on the host grant anything: the client cannot answer. */
export const permissionTool: Tool = {
  name: 'request_permission',
  title: 'Ask the user for a permission',
  description:
    'Asks the user to allow a host, or a file outside the project. Returns the command that the user has to run. With wait_seconds, waits for the user first. Say why you need it.',
  properties: {
    host: { type: 'string', description: 'host:port, such as registry.example.com:443' },
    path: { type: 'string', description: 'or the absolute path of a file or directory on the host' },
    write: { type: 'boolean', description: 'for a path: also ask for writing' },
    reason: { type: 'string', description: 'why you need it' },
    wait_seconds: {
      type: 'number',
      description: 'how long to wait for the answer',
      minimum: 0,
      maximum: MAX_WAIT_SECONDS,
    },
  },
  required: [],
  exactlyOneOf: ['host', 'path'],
  output: {
    granted: { type: 'boolean' },
    permission: {
      type: ['string', 'null'],
      description: 'the command that grants it; the user runs it on the host',
    },
    why: { type: ['string', 'null'], description: 'why it is not granted' },
  },
  effect: READS,
  async run(box, args, { signal, report }) {
    report('waiting for the user')
    const answer = await box.requestPermission(
      { host: text(args, 'host'), path: text(args, 'path'), rw: args['write'] === true },
      { wait: (number(args, 'wait_seconds') ?? 0) * 1000, signal },
    )
    const { granted, permission, why } = answer
    const said = granted ? 'granted: continue' : refusalText(why, permission)
    return { texts: [said], facts: { ...answer }, failed: !granted }
  },
}

function refusalText(why: string | null, permission: string | null): string {
  const refusal = `not granted: ${why ?? 'the user did not answer'}`
  if (permission === null) return refusal
  return `${refusal}
Tell the user why you need it, and that this command on the host grants it: ${permission}
If the user needs more time, call request_permission again with wait_seconds.`
}
