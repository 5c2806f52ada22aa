/** Layers become one, in the order of trust; the profile is decided first, because everything stands on it. */
import { beneathDenials, expansions } from './expansion.ts'
import { FIELDS, grow, narrow } from './fields.ts'
import type { Layer, List, SettingKey, Settings } from './settings.ts'

type Profile = NonNullable<Settings['profile']>

export interface MergeInput {
  /** Makes the base layer for a profile; the profile itself is decided first, because everything stands on it. */
  readonly base: (profile: Profile['value']) => Layer
  /** The user's layers, weakest first. */
  readonly trusted: readonly Layer[]
  readonly untrusted: readonly Layer[]
  readonly allowUserExpansion: boolean
  readonly workspace: string
}

export interface Merged {
  readonly settings: Settings
  /** What the user's own layers say, before an untrusted one took away or added. */
  readonly own: Settings
  readonly layers: readonly Layer[]
  /** Grants that an untrusted layer added because the user let it. */
  readonly expanded: readonly Expansion[]
}

export interface Expansion {
  readonly key: SettingKey
  readonly layer: string
  readonly item: unknown
}

const DEFAULT_PROFILE: Profile = { value: 'coding', source: { layer: 'default', place: undefined } }

export function mergeLayers(input: MergeInput): Merged {
  const { trusted, untrusted } = input
  const said = fold(trusted).profile ?? DEFAULT_PROFILE
  const base = input.base(said.value)
  const own = { ...fold([base, ...trusted]), profile: said }
  const { settings, bases } = decide(input, said, { settings: own, bases: [base] })
  const [first, ...stricter] = bases
  return {
    settings,
    own,
    layers: [...(first === undefined ? [] : [first]), ...trusted, ...stricter, ...untrusted],
    expanded: input.allowUserExpansion
      ? expansions(
          own,
          settings,
          untrusted.map(layer => layer.name),
        )
      : [],
  }
}

type Decided = { readonly settings: Settings; readonly bases: readonly Layer[] }

/** Where nobody but the user said anything, there is nothing to decide. */
function decide(input: MergeInput, said: Profile, own: Decided): Decided {
  if (input.untrusted.length === 0) return own
  return input.allowUserExpansion ? expand(input, said) : restrict(input, said)
}

/**
 * A stricter profile is a limit like any other: what is left is granted by the user's layers on the user's profile and
 * on the stricter one. Putting the stricter one in the place of the user's could widen, where the user narrowed by hand.
 */
function restrict({ base, trusted, untrusted }: MergeInput, said: Profile): Decided {
  const profile = untrusted.reduce(
    (at, { settings }) =>
      settings.profile === undefined ? at : (FIELDS.profile.narrow(at, settings.profile) ?? at),
    said,
  )
  const bases = profile === said ? [base(said.value)] : [base(said.value), base(profile.value)]
  const [granted = {}, ...stricter] = bases.map(layer => fold([layer, ...trusted]))
  const limits = [...stricter, ...untrusted.map(layer => layer.settings)]
  return { settings: { ...limits.reduce(narrow, granted), profile }, bases }
}

function expand({ base, trusted, untrusted, workspace }: MergeInput, said: Profile): Decided {
  const profile = fold(untrusted).profile ?? said
  const bases = [base(profile.value)]
  const granted = fold([...bases, ...trusted])
  const settings = untrusted.reduce((s, { settings }) => {
    // What such a layer empties it takes away, and a list of denials is nothing to take away: those stay the user's.
    const [emptied, added] = partition(settings)
    return grow(narrow(s, emptied), beneathDenials(added, s, workspace))
  }, granted)
  return { settings: { ...settings, profile }, bases }
}

const fold = (layers: readonly Layer[]): Settings =>
  layers.reduce<Settings>((s, layer) => grow(s, layer.settings), {})

/** The lists that a layer empties, and all else that it says. */
function partition(settings: Settings): [Settings, Settings] {
  const isEmptied = (value: unknown) => (value as Partial<List<unknown>>).clear === true
  const pick = (emptied: boolean) =>
    Object.fromEntries(
      Object.entries(settings).filter(([, value]) => isEmptied(value) === emptied),
    ) as Settings
  return [pick(true), pick(false)]
}
