import { describe, expect, test } from 'bun:test'
import { judgeEngine } from './engines.ts'
import { describeEscapes, escapesOf, KNOWN_ESCAPES, riskOf, TABLE_DATE } from './known-escapes.ts'
import { compareVersions, findVersion } from './version.ts'

describe('a version', () => {
  test.each([
    ['bubblewrap 0.8.0', '0.8.0'],
    ['podman version 4.3.1', '4.3.1'],
    ['nftables v1.0.6 (Lester Gooch #5)', '1.0.6'],
    ['runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1', '1.1.5'],
    ['Docker version 28.2.2, build e6534b4', '28.2.2'],
    ['unshare from util-linux 2.38.1', '2.38.1'],
    ['no number', undefined],
    ['', undefined],
  ])('is found in %j', (text, version) => {
    expect(findVersion(text)).toBe(version)
  })

  test.each([
    ['1.2', '1.2.0', 0],
    ['1.10.0', '1.9.9', 1],
    ['0.4.0', '0.4.1', -1],
  ])('%s against %s', (a, b, sign) => {
    expect(Math.sign(compareVersions(a, b))).toBe(sign)
  })
})

describe('known escapes', () => {
  const cves = (program: string, version: string, setuid = false) =>
    escapesOf(program, version, setuid).map(({ cve }) => cve.split(',')[0])

  test.each([
    ['1.1.11', ['CVE-2024-21626', 'CVE-2025-31133']],
    ['1.1.12', ['CVE-2025-31133']],
    ['1.2.7', ['CVE-2025-31133']],
    ['1.2.8', []],
    ['1.3.0', ['CVE-2025-31133']],
    ['1.3.3', []],
    ['1.4.0', []],
  ])('runc %s has %j', (version, expected) => {
    expect(cves('runc', version)).toEqual(expected)
  })

  test('a bubblewrap that is not setuid does not have the setuid vulnerability', () => {
    expect(cves('bwrap', '0.4.0')).toEqual([])
    expect(cves('bwrap', '0.4.0', true)).toEqual(['CVE-2020-5291'])
    expect(cves('bwrap', '0.4.1', true)).toEqual([])
  })

  test('each names a CVE and versions that can be compared, and the table has a date', () => {
    for (const { cve, fixed } of KNOWN_ESCAPES) {
      expect(cve).toMatch(/^CVE-\d{4}-\d{4,}(, CVE-\d{4}-\d{4,})*$/)
      expect(fixed.every(version => findVersion(version) === version)).toBe(true)
    }
    expect(TABLE_DATE).toMatch(/^\d{4}-\d\d-\d\d$/)
    expect(describeEscapes(escapesOf('podman', '4.3.1'))).toContain('CVE-2026-55686')
  })

  test('an engine with one is weak, a fixed version is ok, and QEMU is for virtual machines', () => {
    const old = judgeEngine('docker', '/usr/bin/docker', '24.0.8', 'sudo apt-get install docker.io')
    expect([old.status, old.why?.includes('CVE-2024-23651')]).toEqual(['weak', true])
    const fixed = judgeEngine('docker', '/usr/bin/docker', '24.0.9', '')
    expect([fixed.status, fixed.why]).toEqual(['ok', undefined])
    const unused = judgeEngine('qemu', '/usr/bin/qemu', '1.0', '', 'vm')
    expect([unused.status, unused.why]).toEqual(['ok', 'only isolation "vm" uses it'])
    expect(judgeEngine('docker', '/usr/bin/docker', undefined, '').status).toBe('weak')
  })

  test('risks of a container are listed only for vulnerable programs', () => {
    const fixed = { name: 'crun', version: '1.20' }
    expect(riskOf([fixed, { name: 'runc', version: '1.1.11' }])).toEqual([
      expect.stringMatching(/^runc 1\.1\.11: CVE-2024-21626: .*CVE-2025-31133/),
    ])
    expect(riskOf([fixed])).toEqual([])
  })
})
