/**
 * Recognizes a request that a program inside signed with placeholder keys, and decides whether pen signs it. The whole
 * request is hostile. Region and service are taken from it, because only the client knows them.
 */
import type { Field } from '../http/field.ts'
import type { Refusal } from '../refusal.ts'
import type { AwsCredentials, AwsScope } from './aws-signature.ts'

/** A request to sign. `fields` are those of the client without what pen sets. */
export interface AwsSigning {
  readonly name: string
  readonly credentials: AwsCredentials
  readonly scope: AwsScope
  readonly signed: ReadonlySet<string>
  /** The hash of the body as the client set it. */
  readonly payload: string | undefined
  /** The body must be held: to hash it, or to read the call in it. */
  readonly holds: boolean
  readonly fields: readonly Field[]
}

/** The keys of one secret, by the placeholder of their id. */
export interface AwsKeys {
  readonly name: string
  readonly placeholder: string
  readonly credentials: AwsCredentials
}

const NAME = "[!#$%&'*+.^_`|~0-9a-z-]{1,128}"
const AUTHORIZATION = new RegExp(
  `^AWS4-HMAC-SHA256 +Credential=([A-Za-z0-9]{8,128})/[0-9]{8}/([a-z0-9-]{1,64})/([a-z0-9-]{1,64})/aws4_request *, *` +
    `SignedHeaders=(${NAME}(?:;${NAME})*) *, *Signature=[0-9a-f]{64}$`,
)
/** The server checks a hash. The other words mean that the body is not signed. */
const PAYLOAD = /^(?:[0-9a-f]{64}|UNSIGNED-PAYLOAD|STREAMING-UNSIGNED-PAYLOAD-TRAILER)$/
const HASH = 'x-amz-content-sha256'
/** Fields that pen sets. */
const OWN = new Set(['authorization', 'x-amz-date', 'x-amz-security-token'])
const IN_QUERY = /(?:^|[?&])x-amz-(?:algorithm|credential|signature|signedheaders|security-token)=/i

/** Undefined when no field has a placeholder of AWS keys in a signature. */
export function awsSigningOf(
  all: readonly AwsKeys[],
  {
    host,
    query,
    fields,
  }: { readonly host: string; readonly query: string; readonly fields: readonly Field[] },
): AwsSigning | Refusal | undefined {
  const signatures = fields.filter(({ key }) => key === 'authorization')
  const keys = all.find(({ placeholder }) => signatures.some(({ value }) => value.includes(placeholder)))
  if (keys === undefined) return undefined
  const { name, credentials } = keys
  const [, id, region = '', service = '', names = ''] = AUTHORIZATION.exec(signatures[0]?.value ?? '') ?? []
  if (signatures.length > 1) return notSigned('a request with two signatures')
  if (id !== keys.placeholder) return notSigned('this kind of signature', ONLY_V4)
  if (IN_QUERY.test(decoded(query))) return notSigned('a request with a second signature in its query')
  const scope = { region, service }
  if (!fitsHost(host, scope))
    return notSigned(`a request for ${service} in ${region} at this host`, OTHER_SCOPE)
  // Services of Amazon read no call from such a body.
  if (!AMAZON.test(host) && fields.some(isFormInParts))
    return notSigned('a form in parts, in which a call could be')
  const hashes = fields.filter(({ key }) => key === HASH).map(({ value }) => value)
  const [payload] = hashes
  if (hashes.length > 1 || (payload !== undefined && !PAYLOAD.test(payload)))
    return notSigned('a body with signatures of its parts, or with an unknown kind of hash', UNSIGNED_BODY)
  return {
    name,
    credentials,
    scope,
    signed: new Set(names.split(';')),
    payload: service === 'sts' ? undefined : payload,
    holds: service === 'sts' || payload === undefined || fields.some(isFormType),
    fields: fields.filter(({ key }) => !OWN.has(key)),
  }
}

const decoded = (query: string): string =>
  query.replaceAll(/%([0-7][0-9A-Fa-f])/g, (_, code: string) =>
    String.fromCharCode(Number.parseInt(code, 16)),
  )

const AMAZON = /\.(?:amazonaws\.com(?:\.cn)?|api\.aws|on\.aws)$/
const REGION = /^(?:s3-)?[a-z]{2,4}(?:-[a-z]+){1,3}-[0-9]{1,2}$/
/** Where the name in the host is not the name in the signature. */
const OTHER_NAMES: Readonly<Record<string, string>> = { email: 'ses', oidc: 'sso-oauth' }

/** Whether the host name agrees with the scope. Names that are not Amazon's say nothing about either. */
function fitsHost(host: string, { region, service }: AwsScope): boolean {
  const suffix = AMAZON.exec(host)?.[0]
  if (suffix === undefined) return true
  const labels = host.slice(0, -suffix.length).split('.')
  const regions = labels.slice(-2).filter(label => REGION.test(label))
  const isRegion = (label: string): boolean => label === region || label === `s3-${region}`
  // A name without a region is for all of them.
  if (regions.length > 0 && !regions.some(isRegion)) return false
  return labels.some(
    label =>
      label === service ||
      label.startsWith(`${service}-`) ||
      service.startsWith(label) ||
      service.endsWith(`-${label}`) ||
      OTHER_NAMES[label] === service,
  )
}

/** Calls of STS whose answers hold no credentials. */
const HARMLESS = ['GetCallerIdentity', 'DecodeAuthorizationMessage', 'GetAccessKeyInfo']

/** Calls whose answers hold keys. Servers that are not Amazon's take those of STS under any service. */
const MINTS =
  /^(?:AssumeRo\w*|Get(?:Session|Federation|WebIdentity)Token|GetDelegatedAccessToken|CreateAccessKey|GetCredentialsForIdentity|GetRoleCredentials)$/i

/** STS hands out keys: real ones would come inside. `body` is complete, or empty when it is no form. */
export function refuseMinting(
  { scope, fields }: AwsSigning,
  target: string,
  body: Uint8Array,
): Refusal | undefined {
  const mark = target.indexOf('?')
  const path = mark === -1 ? target : target.slice(0, mark)
  const given = [mark === -1 ? '' : target.slice(mark + 1), Buffer.from(body).toString('latin1')]
  const actions = given
    .flatMap(text => [...new URLSearchParams(text)])
    .filter(([name]) => name.toLowerCase() === 'action')
    .map(([, value]) => value)
  if (scope.service !== 'sts') {
    const targets = fields.filter(({ key }) => folded(key) === 'x-amz-target')
    const named = targets.map(({ value }) => value.split('.').at(-1) ?? '')
    const calls = [...actions, ...named, ...(path.includes('/operation/') ? path.split('/') : [])]
    return calls.some(call => MINTS.test(call))
      ? notSigned('a call that returns credentials', MINTING)
      : undefined
  }
  const isHarmless = actions.length > 0 && actions.every(action => HARMLESS.includes(action))
  return isHarmless && path === '/' && fields.every(isOfForm)
    ? undefined
    : notSigned('a call of STS that may return credentials', MINTING)
}

/** With these fields a server reads the call from elsewhere, or the body in another way than pen. */
const isOfForm = ({ key, value }: Field): boolean =>
  folded(key) === 'content-type'
    ? /^application\/x-www-form-urlencoded(?:; *charset=utf-8)?$/i.test(value)
    : !/^(?:content-encoding|x-amz-target|smithy-protocol)$/.test(folded(key))

const isFormInParts = ({ key, value }: Field): boolean =>
  folded(key) === 'content-type' && /^multipart\/form-data/i.test(value)

const isFormType = ({ key, value }: Field): boolean =>
  folded(key) === 'content-type' && /form-urlencoded/i.test(value)

const folded = (key: string): string => key.replaceAll(/[_.]/g, '-')

const ONLY_V4 = 'use a client that signs by Signature Version 4, in the Authorization field'
const OTHER_SCOPE = 'set the region of the client to that of the host'
const UNSIGNED_BODY = 'switch off chunked signing in the client, or upload with the AWS CLI'
const MINTING = 'assume the role outside, and give its credentials to pen: pen secret add AWS --sign aws'

export const notSigned = (
  what: string,
  fix = 'sign the request once, in the Authorization field',
): Refusal => ({
  reason: 'not-signed',
  why: `pen does not sign ${what}`,
  fix,
})

export const PRESIGNED = notSigned(
  'a URL that carries its signature',
  'sign the request in the Authorization field, or make the URL outside',
)
