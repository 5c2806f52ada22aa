/** Merges all layers in order of trust. The profile is decided first, because the base layer depends on it. */
import { beneathDenials, expansions } from './expansion.ts'
import { FIELDS, grow, narrow } from './fields.ts'
import type { Layer, List, SettingKey, Settings } from './settings.ts'

type Profile = NonNullable<Settings['profile']>

export interface MergeInput {
  /** Makes the base layer of a profile. */
  readonly base: (profile: Profile['value']) => Layer
  /** The user's layers, weakest first. */
  readonly trusted: readonly Layer[]
  readonly untrusted: readonly Layer[]
  readonly allowUserExpansion: boolean
  readonly workspace: string
}

export interface Merged {
  readonly settings: Settings
  /** The merge of the user's own layers, before untrusted layers apply. */
  readonly own: Settings
  readonly layers: readonly Layer[]
  /** Grants that an untrusted layer added with the user's permission. */
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
  const layers = [base, ...trusted]
  // Without an untrusted layer the user's settings are final.
  if (untrusted.length === 0) return { settings: own, own, layers, expanded: [] }
  if (!input.allowUserExpansion) {
    const { settings, stricter } = restrict(input, said, own)
    return { settings, own, layers: [...layers, ...stricter, ...untrusted], expanded: [] }
  }
  const { settings, chosen } = expand(input, said)
  const names = untrusted.map(layer => layer.name)
  const expanded = expansions(own, settings, names)
  return { settings, own, layers: [chosen, ...trusted, ...untrusted], expanded }
}

/**
 * A stricter profile is one more limit. The result is what the user's layers grant on both the user's profile and the stricter
 * one. Replacing the user's profile could widen access where the user restricted it by hand.
 */
function restrict({ base, trusted, untrusted }: MergeInput, said: Profile, own: Settings) {
  const profile = untrusted.reduce(
    (at, { settings }) =>
      settings.profile === undefined ? at : (FIELDS.profile.narrow(at, settings.profile) ?? at),
    said,
  )
  const stricter = profile === said ? [] : [base(profile.value)]
  const limits = [
    ...stricter.map(layer => fold([layer, ...trusted])),
    ...untrusted.map(layer => layer.settings),
  ]
  return { settings: { ...limits.reduce(narrow, own), profile }, stricter }
}

function expand({ base, trusted, untrusted, workspace }: MergeInput, said: Profile) {
  const profile = fold(untrusted).profile ?? said
  const chosen = base(profile.value)
  const settings = untrusted.reduce(
    (s, { settings }) => {
      // An empty list removes grants. It never removes denials: those stay the user's.
      const [emptied, added] = partition(settings)
      return grow(narrow(s, emptied), beneathDenials(added, s, workspace))
    },
    fold([chosen, ...trusted]),
  )
  return { settings: { ...settings, profile }, chosen }
}

const fold = (layers: readonly Layer[]): Settings =>
  layers.reduce<Settings>((s, layer) => grow(s, layer.settings), {})

/** Splits the lists that a layer empties from its other settings. */
function partition(settings: Settings): [Settings, Settings] {
  const isEmptied = (value: unknown) => (value as Partial<List<unknown>>).clear === true
  const pick = (emptied: boolean) =>
    Object.fromEntries(
      Object.entries(settings).filter(([, value]) => isEmptied(value) === emptied),
    ) as Settings
  return [pick(true), pick(false)]
}
