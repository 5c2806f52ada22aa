/** Parses the hosts and addresses that users type for `pen allow`, `pen deny` and `pen forget`. */
import { PenError } from '../../base/error.ts'
import { publicSuffixTest } from '../../config/public-suffix.ts'
import { parseAllowRule, parseDenyRule } from '../../policy/network/endpoint.ts'
import type { AllowRule, DenyRule } from '../../policy/network/net-rule.ts'
import type { Parsed } from '../../policy/source.ts'

export async function allowRules(texts: readonly string[]): Promise<AllowRule[]> {
  requireSome(texts)
  const isPublicSuffix = await publicSuffixTest(texts)
  return texts.map(text => checked(text, parseAllowRule(text, isPublicSuffix)))
}

export async function denyRules(texts: readonly string[]): Promise<DenyRule[]> {
  requireSome(texts)
  const isPublicSuffix = await publicSuffixTest(texts)
  return texts.map(text => checked(text, parseDenyRule(text, isPublicSuffix)))
}

function requireSome(texts: readonly string[]): void {
  if (texts.length === 0)
    throw new PenError('USAGE', {
      what: 'no host given',
      hint: 'name one, for example registry.example.com:443',
    })
}

function checked<T>(text: string, rule: Parsed<T>): T {
  if (rule.ok) return rule.value
  throw new PenError('HOST_SYNTAX', {
    what: `"${text}": ${rule.why}`,
    hint: rule.fix ?? 'write it like registry.example.com:443',
  })
}
