import { printable } from '../../../base/printable.ts'
import type { BrokerClient } from '../../../guest/broker-client.ts'
import type { DirectoryPage } from '../../../protocol/broker-messages.ts'
import { hostPath, withBroker } from '../../frame/broker-connection.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'files ls',
  summary: 'Inside a sandbox: list the grants, or a granted directory',
  details: 'Links are listed but not followed. Denied files are not listed.',
  insideSandbox: 'allow',
  positionals: {
    path: { arity: 'optional', about: 'a directory on the host (default: list all grants)' },
  },
  examples: {
    'pen files ls': 'list all grants',
    'pen files ls /home/you/notes': 'list a granted directory',
  },
  async run({ flags, positionals, env, terminal, answer }) {
    const path = positionals.path === undefined ? undefined : hostPath(positionals.path)
    await withBroker(env, path, async client => {
      if (path === undefined) {
        const places = await client.grants()
        if (places.length === 0 && !flags.json)
          terminal.note('nothing is granted; fix: on the host, run pen grant PATH')
        answer(
          places,
          places.map(place => `${place.write ? 'rw' : 'ro'}  ${printable(place.path)}`),
        )
        return
      }
      const { entries, truncated } = await allPages(client, path)
      answer(
        { entries, truncated },
        entries.map(({ name, kind }) => `${printable(name)}${SIGNS[kind] ?? ''}`),
      )
      if (truncated) terminal.note('the list is truncated')
    })
  },
})

const SIGNS: Readonly<Record<string, string>> = { directory: '/', link: '@' }

async function allPages(
  client: BrokerClient,
  path: string,
): Promise<Pick<DirectoryPage, 'entries' | 'truncated'>> {
  const entries: DirectoryPage['entries'][number][] = []
  let truncated = false
  for (let from: number | null = 0; from !== null; ) {
    const page: DirectoryPage = await client.list(path, from)
    entries.push(...page.entries)
    truncated = page.truncated
    from = page.next
  }
  return { entries, truncated }
}
