/** Reads the JUnit report of one `bun test` run. */

export interface Tally {
  readonly passed: number
  readonly skipped: number
  /** One line each: where, and which claim did not hold. */
  readonly failures: readonly string[]
}

const CASE = /<testcase ([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

export function countTests(xml: string): Tally {
  if (!xml.includes('<testsuites')) throw new Error('not a JUnit report')
  let passed = 0
  let skipped = 0
  const failures: string[] = []
  for (const [, attributes = '', , body = ''] of xml.matchAll(CASE)) {
    if (/<(failure|error)\b/.test(body)) failures.push(describeCase(attributes))
    else if (body.includes('<skipped')) skipped += 1
    else passed += 1
  }
  return { passed, skipped, failures }
}

function describeCase(attributes: string): string {
  const read = (name: string): string => {
    const found = new RegExp(`(?:^| )${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
    return found.replace(/&(#\d+|\w+);/g, (whole, entity: string) =>
      entity.startsWith('#') ? String.fromCodePoint(Number(entity.slice(1))) : (ENTITIES[entity] ?? whole),
    )
  }
  const group = read('classname')
  return `${read('file')}:${read('line')} ${group === '' ? '' : `${group} › `}${read('name')}`
}
