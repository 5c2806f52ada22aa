/** What the gateway needs to open hosts for one run: the project's authority, and the secrets. Loaded only for that. */
import { PenError } from '../../base/error.ts'
import { phase } from '../../base/phases.ts'
import { makeStateDirectory } from '../../config/project.ts'
import { Vault } from '../../gateway/secrets/vault.ts'
import { type Authority, openAuthority } from '../../gateway/tls/authority.ts'
import type { Plan } from '../../plan/plan.ts'
import { decideFile } from '../../policy/files/decide-file.ts'
import type { HostPath } from '../../policy/files/path.ts'
import type { Secret } from '../../policy/network/secret.ts'
import type { Policy } from '../../policy/policy.ts'
import type { Prepared } from '../prepare.ts'
import { gitCredentials } from './git-credentials.ts'
import { secretValues } from './secret-values.ts'
import { withTrust } from './trust.ts'

export interface Opening {
  readonly authority: Authority
  readonly vault: Vault | undefined
}

/** The plan with trust in the authority, and with placeholders in place of secrets. */
export async function prepareOpening(
  prepared: Prepared,
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ readonly prepared: Prepared; readonly opening: Opening }> {
  const { loaded, plan, facts, backend } = prepared
  const { project, policy } = loaded
  if (plan.soft)
    throw new PenError('GAP', {
      what: 'a soft sandbox cannot keep secrets or rules about requests: no kernel hides the key of pen',
      hint: 'use another backend; or pass a key itself with --expose-key NAME',
    })
  const secrets = policy.network.secrets.map(({ rule }) => rule)
  refuseVisible(secrets, policy)
  makeStateDirectory(project.stateDir)
  const authority = openAuthority(project.stateDir, project.id)
  const values = await secretValues(secrets, env, text => authority.randomFor(text))
  const trusting = withTrust(plan, {
    authority,
    stateDir: project.stateDir,
    hostBundle: facts.authorities,
    isImage: backend.engine !== undefined,
    own: new Set(policy.env.keys()),
  })
  const placeholders = [
    ...values.map(({ name, placeholder }) => ({ name, value: placeholder, secret: true })),
    ...(policy.env.has('GIT_CONFIG_COUNT') ? [] : gitCredentials(secrets)),
  ]
  const changed: Plan = {
    ...trusting,
    // A variable of the same name would pass the value on.
    env: [
      ...trusting.env.filter(({ name }) => !placeholders.some(other => other.name === name)),
      ...placeholders,
    ],
  }
  phase('secrets read')
  return {
    prepared: { ...prepared, plan: changed },
    opening: { authority, vault: values.length === 0 ? undefined : new Vault(values) },
  }
}

/** A file that the sandbox can read is no source of a secret. */
function refuseVisible(secrets: readonly Secret[], policy: Policy): void {
  for (const { name, from } of secrets)
    if (from.kind === 'file' && decideFile(policy, from.path as HostPath, 'read').ok)
      throw new PenError('SECRET', {
        what: `the secret ${name} is in a file that the sandbox can read`,
        at: from.path,
        hint: 'move the file out of the project and of the granted paths',
      })
}
