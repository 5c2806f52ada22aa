import { describe, expect, test } from 'bun:test'
import { policyOf } from '../../../test/gateway/world.ts'
import type { Destination } from './decide-connection.ts'
import { printRule } from './net-rule.ts'
import type { Port } from './port.ts'
import { type DialAttempt, suggest } from './suggest.ts'

const wanted = (text: string, count = 1): DialAttempt => {
  const [place = '', port] = text.split(/:(?=\d+$)/)
  const to = /^[\d[]/.test(place) ? { address: place } : { name: place }
  return { to: to as unknown as Destination, port: Number(port) as Port, count }
}
const suggested = (
  texts: readonly string[],
  options: Parameters<typeof policyOf>[0] = { allow: ['known.test:443'] },
) => {
  const isPublic = (name: string) => ['test', 'com', 'co.uk'].includes(name)
  const found = suggest(
    policyOf(options),
    texts.map(text => wanted(text)),
    isPublic,
  )
  return {
    add: found.add.map(({ rule }) => printRule(rule)),
    wildcards: found.wildcards.map(({ rule, covers }) => `${printRule(rule)} for ${covers}`),
    withheld: found.withheld.map(({ target, fix }) => `${target}: ${fix}`),
    denied: found.denied.map(({ target }) => target),
  }
}

describe('a suggestion', () => {
  test('P11 names the requests of a host that has rules about requests, and no wildcard for them', () => {
    const ask = (method: string, path: string): DialAttempt => ({
      ...wanted('api.known.test:443'),
      request: { method, path },
    })
    const asked = [
      ask('GET', '/a'),
      ask('POST', '/a'),
      ask('POST', '/b'),
      ask('POST', '/c'),
      ask('PUT', "/'odd"),
    ]
    const found = (allow: string[], deny: string[] = []) => {
      const { add, wildcards, denied } = suggest(policyOf({ allow, deny }), asked, () => false)
      return [add.map(({ rule }) => printRule(rule)), wildcards.length, denied.map(({ target }) => target)]
    }
    const posts = ['a', 'b', 'c'].map(path => `POST api.known.test:443/${path}`)
    expect(found(['GET api.known.test/**'])).toEqual([posts, 0, []])
    expect(found([])).toEqual([['GET api.known.test:443/a', ...posts], 0, []])
    expect(found(['api.known.test:443'], ['api.known.test/b'])).toEqual([[], 0, posts.slice(1, 2)])
  })

  test('P11 names exactly what was dialled and is not allowed, in order', () => {
    expect(suggested(['b.test:443', 'known.test:443', 'a.test:80', '203.0.113.7:5432']).add).toEqual([
      '203.0.113.7:5432',
      'a.test:80',
      'b.test:443',
    ])
  })

  test('P8 never names a service of this machine, of its network or of its cloud', () => {
    const found = suggested([
      '10.0.0.5:80',
      '169.254.169.254:80',
      'host.pen.internal:5432',
      'nas.local:80',
      'localhost:1',
    ])
    expect([found.add, found.wildcards]).toEqual([[], []])
    expect(found.withheld).toEqual([
      '10.0.0.5:80: pen allow 10.0.0.5:80',
      'metadata:169.254.169.254:80: pen allow metadata:169.254.169.254:80',
      'host.pen.internal:5432: pen allow host.pen.internal:5432',
      'nas.local:80: pen allow nas.local:80',
      'localhost:1: pen allow host.pen.internal:1',
    ])
  })

  test('P16 does not go around a denial', () => {
    const found = suggested(['x.bad.test:443', 'good.test:443'], { allow: [], deny: ['*.bad.test'] })
    expect(found).toMatchObject({ add: ['good.test:443'], denied: ['x.bad.test:443'] })
  })

  test('offers a wildcard beside the list, for three names or more of one port, and never under a public suffix', () => {
    const names = ['a.cdn.test', 'b.cdn.test', 'c.cdn.test'].map(name => `${name}:443`)
    expect(suggested(names)).toMatchObject({ add: names, wildcards: ['*.cdn.test:443 for 3'] })
    expect(suggested(['a.cdn.test:443', 'b.cdn.test:443', 'c.cdn.test:80']).wildcards).toEqual([])
    expect(
      suggested(['a.co.uk:443', 'b.co.uk:443', 'c.co.uk:443', 'd.test:1', 'e.test:1', 'f.test:1']).wildcards,
    ).toEqual([])
  })
})
