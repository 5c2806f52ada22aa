/** Reads the JUnit report of one `bun test` run. */

export interface Failure {
  /** One line: the place and the failed claim. */
  readonly text: string
  /** The failed test, to run it again. A check and a whole suite have none. */
  readonly test?: { readonly file: string; readonly name: string }
}

export interface Tally {
  readonly passed: number
  readonly skipped: number
  readonly failures: readonly Failure[]
}

const CASE = /<testcase ([^>]*?)(\/>|>([\s\S]*?)<\/testcase>)/g
const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

export function countTests(xml: string): Tally {
  if (!xml.includes('<testsuites')) throw new Error('not a JUnit report')
  let passed = 0
  let skipped = 0
  const failures: Failure[] = []
  for (const [, attributes = '', , body = ''] of xml.matchAll(CASE)) {
    if (/<(failure|error)\b/.test(body)) failures.push(describeCase(attributes))
    else if (body.includes('<skipped')) skipped += 1
    else passed += 1
  }
  return { passed, skipped, failures }
}

function describeCase(attributes: string): Failure {
  const read = (name: string): string => {
    const found = new RegExp(`(?:^| )${name}="([^"]*)"`).exec(attributes)?.[1] ?? ''
    return found.replace(/&(#\d+|\w+);/g, (whole, entity: string) =>
      entity.startsWith('#') ? String.fromCodePoint(Number(entity.slice(1))) : (ENTITIES[entity] ?? whole),
    )
  }
  const [group, file, name] = [read('classname'), read('file'), read('name')]
  return { text: `${file}:${read('line')} ${group === '' ? '' : `${group} › `}${name}`, test: { file, name } }
}
