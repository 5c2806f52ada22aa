/** Runs the doctor on a machine with parts removed, in a mount namespace of the test. */
import { expect } from 'bun:test'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Box } from './box.ts'
import { isRoot, PEN } from './launcher.ts'

export interface Report {
  readonly version: number
  readonly works: boolean
  readonly ok: boolean
  readonly findings: readonly {
    readonly id: string
    readonly status: 'ok' | 'weak' | 'fails'
    readonly what: string
    readonly why: string | null
    readonly fix: string | null
  }[]
}

export interface Asked {
  readonly code: number | null
  readonly stderr: string
  readonly report: Report
  readonly of: (id: string) => Report['findings'][number] | undefined
}

/** No query leaves the machine: the name server is an unused loopback address. */
export const NOBODY = '127.0.0.99'

/**
 * Probing the machine's engines takes longer than everything else. Claims about other things run without
 * engines.
 */
type Engines = 'as they are' | 'none'
const NO_ENGINES = `for engine in podman docker runsc; do
  ! at=$(command -v $engine) || mount --bind /dev/null "$(readlink -f "$at")"
done`

/**
 * The same command in its own mount namespace, after `change`, which runs as root and only affects that
 * namespace.
 */
export function inPrivate(
  box: Box,
  words: readonly string[],
  change = '',
  engines: Engines = 'none',
): [string, ...string[]] {
  const [first = '', ...others] = words
  if (!isRoot) return [first, ...others]
  const resolvConf = join(box.root, 'resolv.conf')
  writeFileSync(resolvConf, `nameserver ${NOBODY}\n`)
  const script = `mount --bind ${resolvConf} "$(readlink -f /etc/resolv.conf)"\n${engines === 'none' ? NO_ENGINES : ''}\n${change}\nexec "$@"`
  return ['unshare', '-m', 'sh', '-ec', script, 'sh', ...words]
}

interface Where {
  readonly cwd?: string
  readonly engines?: Engines
}

export function pen(box: Box, args: readonly string[], change = '', { cwd, engines }: Where = {}) {
  const words = [...box.launcher.who.become, PEN, ...args]
  const [program, ...rest] = inPrivate(box, words, change, engines)
  return spawnSync(program, rest, {
    cwd: cwd ?? box.project,
    env: box.env(),
    encoding: 'utf8',
    timeout: 60_000,
  })
}

export function doctor(box: Box, change = '', flags: readonly string[] = [], where: Where = {}): Asked {
  const { status, stdout, stderr } = pen(box, ['doctor', '--json', ...flags], change, where)
  if (stdout === '') throw new Error(stderr)
  const report = JSON.parse(stdout) as Report
  return { code: status, stderr, report, of: id => report.findings.find(finding => finding.id === id) }
}

/** The doctor's verdict is that of `pen run` itself. */
export function agrees(box: Box, change: string, where: Where = {}): Asked {
  const asked = doctor(box, change, [], where)
  const ran = pen(box, ['run', '--', 'true'], change, where)
  expect([change, asked.code === 0, asked.report.works]).toEqual([change, ran.status === 0, ran.status === 0])
  return asked
}

/** A file that is not a program. */
export const missing = (path: string) => `mount --bind /dev/null "$(readlink -f ${path})"`
export const failing = ({ report }: Asked) =>
  report.findings.filter(({ status }) => status === 'fails').map(({ id }) => id)

/** A program in `/usr/local/bin`, alone there, with the user's other programs elsewhere. */
export const program = (name: string, script: string) =>
  `mount -t tmpfs -o mode=755 none /usr/local/bin
   printf '%s\\n' '#!/bin/sh' '${script}' > /usr/local/bin/${name}; chmod 755 /usr/local/bin/${name}`
