import type { SandboxStatus } from '../../run/status.ts'

/** Servers of the sandbox that are not forwarded, with the command that opens one. A supervisor of another version reports none. */
export function serverText({ listening, forwards }: Partial<SandboxStatus>): string | undefined {
  const closed = (listening ?? []).filter(port => !forwards?.some(({ guest }) => guest === port))
  return closed.length === 0 ? undefined : `port ${closed.join(', ')} (pen open ${closed[0]})`
}
