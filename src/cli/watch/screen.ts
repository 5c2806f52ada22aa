/** The lines of the `pen watch` screen, cut to its width. Draws nothing. */
import { endOf, printable } from '../../base/printable.ts'
import type { Paint } from '../render/colour.ts'
import { VERDICT_COLOURS } from '../render/log-line.ts'
import { showSize } from '../render/table.ts'
import type { HeldTarget, RefusedTarget, WatchState } from './state.ts'

export interface View {
  readonly state: WatchState
  readonly columns: number
  readonly rows: number
  readonly now: number
  /** The sandbox's name. */
  readonly project: string
  readonly selected: string | undefined
  /** False right after the selection changes: then answer keys are ignored. */
  readonly isArmed: boolean
  readonly message: string
  /** Servers of the sandbox that can be opened. */
  readonly servers?: string | undefined
  readonly paint: Paint
}

const KEYS = 'o once  s session  a always  d deny once  n never  up/down select  q quit'
const REFUSED_KEYS = 'o once  s session  a always  n never  up/down select  q quit'
const CHOOSE_KEYS = 'up/down select a refused host to allow  q quit'
const IDLE_KEYS = 'q quit'

export function screenLines(view: View): string[] {
  const { state, columns, rows, now, paint } = view
  const cut = (text: string): string => cutTo(columns, text)
  const held = state.held(now)
  const room = Math.max(1, Math.floor((rows - 5) / 2))
  const shown = around(held, view.selected, room)
  const hidden = held.length - shown.length
  const top = [
    paint('bold', cut(`pen watch  ${view.project}`)),
    cut(totalsText(state.totals)),
    ...(view.servers === undefined || rows < 12 ? [] : [cut(`servers inside: ${view.servers}`)]),
    paint(
      'bold',
      cut(held.length === 0 ? 'nothing waits for approval' : `${held.length} waiting for approval`),
    ),
    ...shown.map(target => choice(target.key, heldText(target, view), view)),
    ...(hidden > 0 ? [cut(`  and ${hidden} more`)] : []),
    ...refusedLines(view, Math.floor((rows - shown.length - 6) / 2)),
  ]
  const bottom = [cut(view.message), paint('dim', cut(keysFor(view, held)))]
  const left = Math.max(0, rows - top.length - bottom.length)
  const recent = state.lines(left).map(({ verdict, text }) => paint(VERDICT_COLOURS[verdict], cut(text)))
  const empty = Array.from({ length: left - recent.length }, () => '')
  return [...top, ...recent, ...empty, ...bottom].slice(0, rows)
}

function refusedLines(view: View, room: number): string[] {
  const refused = view.state.refused()
  if (refused.length === 0 || room < 2) return []
  const lines = around(refused, view.selected, room - 1).map(({ key, target, count }) => {
    const many = count > 1 ? ` x${count}` : ''
    return choice(key, `${shorten(target, view.columns - 3 - many.length)}${many}`, view)
  })
  const hosts = refused.length === 1 ? '1 refused host' : `${refused.length} refused hosts, newest first`
  return [view.paint('bold', cutTo(view.columns, hosts)), ...lines]
}

/** A line that can be selected. */
function choice(key: string, text: string, { columns, selected, isArmed, paint }: View): string {
  if (key !== selected) return cutTo(columns, `  ${text}`)
  return paint(isArmed ? 'cyan' : 'dim', cutTo(columns, `> ${text}`))
}

const cutTo = (columns: number, text: string): string =>
  text.length > columns ? `${text.slice(0, columns - 1)}~` : text

function keysFor({ state, selected }: View, held: readonly HeldTarget[]): string {
  const refused = state.refused()
  if (refused.some(({ key }) => key === selected)) return REFUSED_KEYS
  if (held.length > 0) return KEYS
  return refused.length > 0 ? CHOOSE_KEYS : IDLE_KEYS
}

/** As many targets as fit, including the selected one. */
function around<T extends HeldTarget | RefusedTarget>(
  held: readonly T[],
  selected: string | undefined,
  room: number,
): readonly T[] {
  const at = held.findIndex(({ key }) => key === selected)
  const from = Math.max(0, Math.min(at - room + 1, held.length - room))
  return held.slice(from, from + room)
}

/** A long name loses its beginning: the sandbox chose the name, and its end shows the domain. A path loses its end. */
function shorten(target: string, room: number): string {
  const text = printable(target, 600)
  return text.includes('/') ? cutTo(room, text) : endOf(text, room)
}

function heldText({ target, run, until, count }: HeldTarget, view: View): string {
  const seconds = Math.max(0, Math.ceil((until - view.now) / 1000))
  const many = count > 1 ? ` x${count}` : ''
  const waits = ` ${`${seconds} s`.padStart(6)}${many}`
  const room = view.columns - 3 - waits.length
  const name = shorten(target, room).padEnd(Math.min(36, room))
  return `${name}${waits}  run ${printable(run, 40)}`
}

function totalsText({
  allowed,
  refused,
  quiet,
  failed,
  limits,
  bytesUp,
  bytesDown,
}: WatchState['totals']): string {
  const quietly = quiet === 0 ? '' : ` (${quiet} in the background)`
  return `${allowed} allowed  ${refused} refused${quietly}  ${failed} failed  ${limits} limits  ${showSize(bytesUp)} up  ${showSize(bytesDown)} down`
}
