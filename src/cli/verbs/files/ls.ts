import { EXIT } from '../../../base/error.ts'
import { printable } from '../../../base/printable.ts'
import type { BrokerClient } from '../../../guest/broker-client.ts'
import type { DirectoryPage } from '../../../protocol/broker-messages.ts'
import { hostPath, withBroker } from '../../frame/broker-connection.ts'
import { jsonFlag } from '../../frame/flag-spec.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'files ls',
  summary: 'Inside a sandbox: list the grants, or a granted directory',
  details: 'Links are listed but not followed. Denied files are not listed.',
  insideSandbox: 'allow',
  flags: jsonFlag,
  positionals: {
    path: { arity: 'optional', about: 'a directory on the host (default: list all grants)' },
  },
  examples: [
    { line: 'pen files ls', does: 'list all grants' },
    { line: 'pen files ls /home/you/notes', does: 'list a granted directory' },
  ],
  async run({ flags, positionals, env, terminal }) {
    const path = positionals.path === undefined ? undefined : hostPath(positionals.path)
    await withBroker(env, path, async client => {
      if (path === undefined) {
        const places = await client.grants()
        if (flags.json) terminal.printJson(places)
        else if (places.length === 0)
          terminal.note('nothing is granted; fix: on the host, run pen grant PATH')
        else
          for (const place of places) terminal.print(`${place.write ? 'rw' : 'ro'}  ${printable(place.path)}`)
        return
      }
      const { entries, truncated } = await allPages(client, path)
      if (flags.json) terminal.printJson({ entries, truncated })
      else
        for (const { name, kind } of entries)
          terminal.print(`${printable(name)}${kind === 'directory' ? '/' : kind === 'link' ? '@' : ''}`)
      if (truncated) terminal.note('the list is truncated')
    })
    return EXIT.ok
  },
})

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
