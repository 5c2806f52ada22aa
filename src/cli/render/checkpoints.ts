/** Checkpoints of a review layer, for the user. */
import type { Checkpoint, Why } from '../../review/checkpoint/checkpoint.ts'
import { showSize } from './table.ts'

export const WHY: Readonly<Record<Why, string>> = {
  asked: 'by you',
  accept: 'by pen, after an accept',
  rollback: 'by pen, before a rollback',
}

export const checkpointSize = ({ size }: Checkpoint): string =>
  size === null ? '-' : `${size.names} ${size.names === 1 ? 'name' : 'names'}, ${showSize(size.bytes)}`

export const checkpointData = ({ name, made, why, size }: Checkpoint) => ({
  name,
  made: new Date(made).toISOString(),
  why,
  names: size?.names ?? null,
  bytes: size?.bytes ?? null,
})
