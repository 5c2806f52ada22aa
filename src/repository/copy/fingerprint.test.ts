import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { bothFingerprints, IN_PART } from './fingerprint.ts'

function withRefs(act: (dir: string, write: (ref: string, text: string) => void) => void): void {
  const dir = mkdtempSync(`${tmpdir()}/fingerprint-`)
  try {
    act(dir, (ref, text) => {
      mkdirSync(`${dir}/refs/heads/${ref}`.replace(/\/[^/]+$/, ''), { recursive: true })
      writeFileSync(`${dir}/refs/heads/${ref}`, text)
    })
  } finally {
    rmSync(dir, { recursive: true })
  }
}

test('a ref that is written in place, or lies behind many others, changes the fingerprint', () => {
  withRefs((dir, write) => {
    for (let i = 0; i < 260; i++) write(`branch${i}`, 'a')
    for (let i = 0; i < 5; i++) write(`z${i}/a`, 'a')
    for (const ref of ['branch7', 'z2/a']) {
      const before = bothFingerprints(dir, dir)
      expect(before).not.toContain(IN_PART)
      expect(bothFingerprints(dir, dir)).toBe(before)
      Bun.sleepSync(20)
      write(ref, 'b')
      expect(bothFingerprints(dir, dir)).not.toBe(before)
    }
  })
})

test('one that leaves refs or directories out says so', () => {
  for (const name of [(i: number) => `branch${i}`, (i: number) => `in${i}/a`])
    withRefs((dir, write) => {
      for (let i = 0; i < 600; i++) write(name(i), 'a')
      expect(bothFingerprints(dir, dir)).toContain(IN_PART)
    })
})
