import { PenError } from '../../../base/error.ts'
import { addInclude, hasInclude, removeInclude, userConfig } from '../../../ssh/include-line.ts'
import { hostsFile, makeSshHost } from '../../../ssh/ssh-host.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'ssh-config',
  summary: 'Print the SSH settings for this sandbox',
  details:
    'Makes keys for the sandbox, which stay on this machine, and writes its Host block to ~/.pen/ssh/config, for ssh, scp, rsync and editors. Your ~/.ssh/config changes only with --install: one Include line at its top. --remove takes that line out again; so does pen uninstall. pen rm removes the keys and the block. A connection starts the sandbox after a crash, not after pen stop.',
  flags: {
    install: { kind: 'boolean', about: 'add the Include line to ~/.ssh/config' },
    remove: { kind: 'boolean', about: 'remove the Include line from ~/.ssh/config' },
  },
  examples: {
    'pen ssh-config': 'print the block, and where it was written',
    'pen ssh-config --install': 'let ssh and editors find it',
    'pen ssh-config --remove': 'restore ~/.ssh/config',
  },
  async run({ flags, project, terminal, answer }) {
    const place = project.world
    if (flags.install && flags.remove)
      throw new PenError('USAGE', { what: '--install and --remove together', hint: 'choose one of them' })
    const file = userConfig(place)
    if (flags.remove) {
      const removed = await removeInclude(place)
      const text = removed ? `${file}: pen's Include line was removed` : `${file}: there is no line of pen's`
      answer({ version: 1, file, removed }, text)
      return
    }
    const { host, block } = await makeSshHost(project)
    const hosts = hostsFile(place.state)
    if (flags.install) await addInclude(place)
    const included = hasInclude(place)
    const lines = included ? [`ssh ${host} works; ${file} includes ${hosts}`] : block.trimEnd().split('\n')
    answer({ version: 1, host, file: hosts, included, block }, flags.install ? lines : block.trimEnd())
    if (!flags.install && !flags.json)
      terminal.note(
        included
          ? `pen: ssh ${host}`
          : `pen: ssh -F ${hosts} ${host}; pen ssh-config --install makes it: ssh ${host}`,
      )
    return
  },
})
