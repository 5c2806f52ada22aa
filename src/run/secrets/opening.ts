/** What the gateway needs to open hosts for one run: the project's authority, and the secrets. Loaded only for that. */
import { PenError } from '../../base/error.ts'
import { phase } from '../../base/phases.ts'
import { makeStateDirectory } from '../../config/project.ts'
import type { AwsKeys } from '../../gateway/secrets/aws-request.ts'
import { type SecretValue, Vault } from '../../gateway/secrets/vault.ts'
import { type Authority, openAuthority } from '../../gateway/tls/authority.ts'
import type { Plan } from '../../plan/plan.ts'
import type { Secret } from '../../policy/network/secret.ts'
import type { Prepared } from '../prepare.ts'
import { gitCredentials } from './git-credentials.ts'
import type { Random } from './placeholder.ts'
import { secretValues } from './secret-values.ts'
import { TokenStore } from './token-store.ts'
import { withTrust } from './trust.ts'
import { isReplaceable, refuseReplaceableTrust, refuseVisible } from './visible-source.ts'

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
  refuseVisible(secrets, policy, plan)
  refuseReplaceableTrust(process.env['NODE_EXTRA_CA_CERTS'], policy)
  const { shared } = project
  makeStateDirectory(shared.stateDir)
  const authority = openAuthority(shared.stateDir, shared.id)
  const world = { env, isReplaceable: (program: string) => isReplaceable(program, policy) }
  const randomFor = (text: string): Random => authority.randomFor(text)
  const [signIns, given] = [secrets.filter(isSignIn), secrets.filter(secret => !isSignIn(secret))]
  const values = await secretValues(given, world, randomFor)
  const trusting = withTrust(plan, {
    authority,
    stateDir: shared.stateDir,
    volumes: facts.volumes,
    hostBundle: facts.authorities,
    isImage: backend.engine !== undefined,
    own: new Set(policy.env.keys()),
  })
  const placeholders = [
    ...values.map(({ variable, placeholder }) => ({ name: variable, value: placeholder, secret: true })),
    ...(policy.env.has('GIT_CONFIG_COUNT') ? [] : gitCredentials(given)),
  ]
  // A variable of the same name would pass the value on.
  const others = trusting.env.filter(({ name }) => !placeholders.some(other => other.name === name))
  const changed: Plan = { ...trusting, env: [...others, ...placeholders] }
  const tokens = signIns.length === 0 ? undefined : new TokenStore(shared.stateDir, signIns, randomFor)
  const vault = new Vault(policy.network.index, values, awsKeys(given, values), tokens)
  vault.refuseCopies({ env: others, argv: plan.argv })
  phase('secrets read')
  return {
    prepared: { ...prepared, plan: changed },
    opening: {
      authority,
      vault: secrets.length === 0 ? undefined : vault,
    },
  }
}

const isSignIn = ({ from }: Secret): boolean => from.kind === 'oauth'

const awsKeys = (secrets: readonly Secret[], values: readonly SecretValue[]): AwsKeys[] =>
  secrets.flatMap(({ name, sign }) => {
    const [id, key, token] = sign === undefined ? [] : values.filter(value => value.name === name)
    if (id === undefined || key === undefined) return []
    const credentials = { id: id.value, key: key.value, token: token?.value }
    return [{ name, placeholder: id.placeholder, credentials }]
  })
