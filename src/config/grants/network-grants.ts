/**
 * Temporary rules of `pen allow` and `pen deny`: until a time, for one run, or for one connection. They are trusted like the
 * live config and stored beside it. They are not part of the config, so no backup and no project contains them.
 */
import { writeFileAtomically } from '../../base/atomic-file.ts'
import { PenError } from '../../base/error.ts'
import { readRegularFile } from '../../base/regular-file.ts'
import { parseAllowRule, parseDenyRule } from '../../policy/network/endpoint.ts'
import { type AllowRule, type DenyRule, printRule } from '../../policy/network/net-rule.ts'
import type { IsPublicSuffix } from '../../policy/network/net-target.ts'
import type { Parsed } from '../../policy/source.ts'
import { isObject, type JsonValue, printJson, readJson } from '../json/json.ts'
import { makeStateDirectory } from '../project.ts'
import { publicSuffixTest } from '../public-suffix.ts'
import { claimGrant, grantDirectory, grantFiles, newGrantFile } from './grant-files.ts'

export interface GrantOrder {
  readonly effect: 'allow' | 'deny'
  readonly rule: AllowRule | DenyRule
  /** The command that made the grant. It is shown with the rule. */
  readonly by: 'pen allow' | 'pen deny' | 'pen watch'
  /** For one connection only. */
  readonly once: boolean
  /** For this run only. */
  readonly run: string | undefined
  /** Undefined only for a grant that ends with its run. */
  readonly until: Date | undefined
}

export interface Grant extends GrantOrder {
  readonly file: string
  readonly made: Date
}

const MAX_BYTES = 4096
/** More are refused, because a permanent rule is missing. */
const MOST_GRANTS = 256
/** A clock that was set back by more than this must not revive a grant. */
const CLOCK_SLACK_MS = 60_000

export function addGrants(stateDir: string, orders: readonly GrantOrder[]): void {
  if (grantFiles(stateDir).length + orders.length > MOST_GRANTS)
    throw new PenError('STATE', {
      what: `there are ${MOST_GRANTS} temporary grants already`,
      at: grantDirectory(stateDir),
      hint: 'write a permanent rule (pen allow HOST:PORT), or remove some with pen forget',
    })
  makeStateDirectory(grantDirectory(stateDir))
  const made = new Date()
  for (const [i, { effect, rule, by, once, run, until }] of orders.entries())
    writeFileAtomically(
      `${grantDirectory(stateDir)}/${newGrantFile(new Date(made.getTime() + i))}`,
      printJson({
        version: 1,
        [effect]: printRule(rule),
        by,
        made: made.toISOString(),
        ...(once && { once }),
        ...(run !== undefined && { run }),
        ...(until !== undefined && { until: until.toISOString() }),
      }),
    )
}

/** The grants in force, oldest first. A damaged file throws, because it may be a denial. */
export const readGrants = async (stateDir: string, now = Date.now()): Promise<Grant[]> =>
  (await allGrants(stateDir)).filter(grant => !isOver(grant, now))

/** Removes the matching grants and all expired ones. Returns the matching ones that were in force. */
export async function removeGrants(stateDir: string, isMeant: (grant: Grant) => boolean): Promise<Grant[]> {
  const now = Date.now()
  return (await allGrants(stateDir)).filter(grant => {
    const over = isOver(grant, now)
    if (!over && !isMeant(grant)) return false
    return claimGrant(stateDir, grant.file) && !over
  })
}

const isOver = ({ made, until }: Grant, now: number): boolean =>
  made.getTime() > now + CLOCK_SLACK_MS || (until?.getTime() ?? Infinity) <= now

async function allGrants(stateDir: string): Promise<Grant[]> {
  const found = grantFiles(stateDir).flatMap(file => {
    const path = `${grantDirectory(stateDir)}/${file}`
    const bytes = readRegularFile(path, { maxBytes: MAX_BYTES, owner: 'self-or-root' })
    // Undefined: the grant was used after the listing.
    return bytes === undefined ? [] : [{ file, path, value: readJson(bytes, path).value }]
  })
  if (found.length === 0) return []
  const isPublicSuffix = await publicSuffixTest(['*'])
  return found.map(({ file, path, value }) => readGrant(file, path, value, isPublicSuffix))
}

function readGrant(file: string, path: string, value: JsonValue, isPublicSuffix: IsPublicSuffix): Grant {
  const damaged = (what: string): PenError =>
    new PenError('CONFIG_VALUE', {
      what: `a temporary grant is damaged: ${what}`,
      at: path,
      hint: 'remove the file',
    })
  if (!isObject(value)) throw damaged('not an object')
  const { version, allow, deny, by, made, once, run, until, ...rest } = value
  const text = allow ?? deny
  if (version !== 1 || Object.keys(rest).length > 0) throw damaged('not of this version')
  if (typeof text !== 'string' || (allow === undefined) === (deny === undefined)) throw damaged('no rule')
  const rule: Parsed<DenyRule> =
    allow === undefined ? parseDenyRule(text, isPublicSuffix) : parseAllowRule(text, isPublicSuffix)
  if (!rule.ok) throw damaged(rule.why)
  if (by !== 'pen allow' && by !== 'pen deny' && by !== 'pen watch') throw damaged('"by"')
  if (once !== undefined && once !== true) throw damaged('"once"')
  if (run !== undefined && typeof run !== 'string') throw damaged('"run"')
  const time = (at: unknown): Date => {
    if (typeof at !== 'string' || !TIME.test(at)) throw damaged('a time')
    return new Date(at)
  }
  if (until === undefined && (run === undefined || once === true)) throw damaged('it has no end')
  return {
    file,
    effect: allow === undefined ? 'deny' : 'allow',
    rule: rule.value,
    by,
    once: once === true,
    run,
    made: time(made),
    until: until === undefined ? undefined : time(until),
  }
}

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
