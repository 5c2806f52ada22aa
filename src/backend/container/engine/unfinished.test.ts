import { expect, test } from 'bun:test'
import { unfinishedAmong } from './unfinished.ts'

const NOW = Date.parse('2024-05-01T12:00:00Z')
const ID = 'ab'.repeat(32)
const LEFT = {
  Id: ID,
  Names: ['pen-app-7d194179c27e324e'],
  Created: NOW / 1000 - 3600,
  State: 'storage',
  Labels: null,
}

const found = (...containers: readonly object[]): string[] =>
  unfinishedAmong(JSON.stringify(containers), NOW).map(({ name }) => name)

test('storage that podman has no record of is pen’s by its name, with or without a run', () => {
  const ofRun = 'pen-my-app-7d194179c27e324e-20240501-110000-2e003b'
  expect(found(LEFT, { ...LEFT, Names: [ofRun] }, { ...LEFT, Names: [`${ofRun}-helper`] })).toEqual([
    'pen-app-7d194179c27e324e',
    ofRun,
    `${ofRun}-helper`,
  ])
})

test('storage that is new, known to podman, or has another name is not removed', () => {
  for (const other of [
    { Created: NOW / 1000 - 100 },
    { Created: undefined },
    { State: 'running' },
    { State: 'created' },
    { Names: ['pen-of-mine'] },
    { Names: ['app-7d194179c27e324e'] },
    { Names: null },
    { Id: '--all' },
  ])
    expect(found({ ...LEFT, ...other })).toEqual([])
  expect(unfinishedAmong('null', NOW)).toEqual([])
})
