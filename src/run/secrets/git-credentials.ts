/**
 * Lets git over HTTPS use a token: a credential helper in the sandbox answers with the placeholder. `gh` reads its
 * variable by itself. git gets the setting by variables, because `~/.gitconfig` may be a mount.
 */
import type { Variable } from '../../plan/plan.ts'
import { printEndpoint } from '../../policy/network/net-rule.ts'
import { HTTPS_PORT } from '../../policy/network/port.ts'
import type { Secret } from '../../policy/network/secret.ts'

export function gitCredentials(secrets: readonly Secret[]): Variable[] {
  const entries = secrets.flatMap(({ name, to, headers }) =>
    headers.includes('authorization')
      ? to.flatMap(({ rule, plain }) => {
          if (rule.kind === 'address' || plain) return []
          const host = printEndpoint(rule, rule.port === HTTPS_PORT ? 'any' : rule.port)
          const key = `credential.https://${host}.helper`
          // The empty value removes helpers of other config files.
          return [
            [key, ''],
            [key, helper(name)],
          ] as const
        })
      : [],
  )
  if (entries.length === 0) return []
  const set = (name: string, value: string): Variable => ({ name, value, secret: false })
  return [
    set('GIT_CONFIG_COUNT', String(entries.length)),
    ...entries.flatMap(([key, value], i) => [
      set(`GIT_CONFIG_KEY_${i}`, key),
      set(`GIT_CONFIG_VALUE_${i}`, value),
    ]),
  ]
}

/** GitHub and GitLab take any user name beside a token. The name of a secret is a name of a variable. */
const helper = (name: string): string =>
  `!f() { test "$1" = get && printf 'username=x-access-token\\npassword=%s\\n' "$${name}"; }; f`
