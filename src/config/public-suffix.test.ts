import { expect, test } from 'bun:test'
import { parseHttpRule } from '../policy/network/endpoint.ts'
import { publicSuffixTest } from './public-suffix.ts'

test('a wildcard under a public suffix is refused, one under a registered name is not', async () => {
  const isPublicSuffix = await publicSuffixTest(['*.example.com'])
  for (const text of [
    '*.com',
    '*.co.uk',
    '*.com.au',
    '*.ck',
    '*.anything.ck',
    '*.xn--p1ai',
    '*.new-top-level-domain',
  ])
    expect(`${text} ${parseHttpRule(text, isPublicSuffix).ok}`).toBe(`${text} false`)
  for (const text of [
    '*.example.com',
    '*.example.co.uk',
    '*.githubusercontent.com',
    '*.github.io',
    '*.allowed.test',
    '*.team.internal',
    '*.www.ck',
  ])
    expect(`${text} ${parseHttpRule(text, isPublicSuffix).ok}`).toBe(`${text} true`)
})

test('without a star no list is loaded, and then a wildcard would be refused', async () => {
  const isPublicSuffix = await publicSuffixTest(['example.com', 7, null])
  expect(parseHttpRule('example.com', isPublicSuffix).ok).toBe(true)
  expect(parseHttpRule('*.example.com', isPublicSuffix).ok).toBe(false)
})
