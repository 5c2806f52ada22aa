import { editAndWait } from '../../../audit/edit-and-wait.ts'
import { EXIT } from '../../../base/error.ts'
import { removeSecrets } from '../../../config/secrets.ts'
import { auditDirectories } from '../../frame/network-rules.ts'
import { defineVerb } from '../../frame/verb.ts'

export const verb = defineVerb({
  name: 'secret remove',
  summary: 'Remove secrets, also for running sandboxes',
  details:
    'Requests with the placeholder are refused from then on. A value that pen stored is deleted. Exit code 1 if there was none.',
  positionals: { name: { arity: 'many', about: 'the name of the secret' } },
  examples: { 'pen secret remove GH_TOKEN': 'the sandbox cannot use it any more' },
  async run({ positionals, project, answer }) {
    const removed = await editAndWait(auditDirectories(project), () =>
      removeSecrets(project, positionals.name),
    )
    answer(
      { removed, project: project.world.workspace },
      removed.length === 0 ? 'no such secret' : `removed: ${removed.join(', ')}`,
    )
    return removed.length === 0 ? EXIT.failed : EXIT.ok
  },
})
