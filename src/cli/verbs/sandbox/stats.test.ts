import { expect, test } from 'bun:test'
import { statsTable } from './stats.ts'

const reading = (id: string) =>
  ({
    id,
    stats: {
      atMs: 1000,
      cpuMs: 1_234_567,
      memoryBytes: 3_123_456_789,
      processes: 4095,
      diskBytes: 1_023_456_789,
      executions: 1234,
      limits: { memory: 4 * 1024 ** 3, pids: 4096, disk: 10 * 1024 ** 3 },
      network: { open: 128, denied: 123_456, bytesUp: 123_456_789, bytesDown: 123_456_789 },
    },
  }) as never

test('stats fit 80 columns with any name, and omit nothing', () => {
  const rows = [reading('a-0123456789abcdef'), reading(`${'long-'.repeat(12)}b-fedcba9876543210`)]
  const lines = statsTable(rows, rows, 80)
  for (const line of lines) expect(line.length).toBeLessThanOrEqual(80)
  const text = lines.join('\n')
  for (const word of ['4095 / 4096', '123456', '118 MiB', 'b-fedcba9876543210', 'REFUSED', 'DISK'])
    expect(text).toContain(word)
})

test('stats are one table where it fits', () => {
  const rows = [reading('a-0123456789abcdef')]
  expect(statsTable(rows, rows, 200)).toHaveLength(2)
})
