/** The id of the run that wrote the file. */
export const DENIED_IN = 'audit/20260102-030405-1a2b3c.7.0.jsonl'

/** A line of the audit about a refused connection. */
export const deniedLine = (fields: object): string =>
  JSON.stringify({
    v: 1,
    seq: 1,
    time: '2026-01-02T03:04:05.000Z',
    run: '20260102-030405-1a2b3c',
    kind: 'connection-denied',
    verdict: 'deny',
    port: 443,
    fix: 'pen allow it',
    ...fields,
  })
