/**
 * A guest whose commands are root, by `vm.root`. Its kernel is the sandbox's own, so nothing inside is confined. What
 * holds is outside: the mounts of virtiofsd's sandbox, QEMU's sandbox, the gateway, the guest's memory and vCPUs.
 */
import { lstatSync, readFileSync } from 'node:fs'
import type { Plan, Step } from '../../plan/plan.ts'
import { type GuestPath, isWithin } from '../../policy/files/path.ts'
import { SANDBOX_HOME } from '../../policy/profile.ts'
import { withUser } from '../container/accounts.ts'
import { shown } from './file-server.ts'

/** What dpkg, apt and podman read. Their files with passwords and keys are others, and are not shown. */
const SYSTEM = [
  '/var/lib/dpkg',
  '/etc/apt/sources.list',
  '/etc/apt/sources.list.d',
  '/etc/apt/trusted.gpg.d',
  '/etc/containers/policy.json',
  '/etc/containers/registries.conf',
]
const ROOT: Readonly<Record<string, string>> = {
  '/etc/passwd': `root:x:0:0:root:${SANDBOX_HOME}:/bin/sh\n`,
  '/etc/group': 'root:x:0:\n',
}
const ACCOUNTS: readonly string[] = Object.keys(ROOT)

/** The plan of a guest whose system is the host's. An image brings its own accounts and packages. */
export function withHostPackages(plan: Plan): Plan {
  const there = SYSTEM.filter(path => {
    const found = lstatSync(path, { throwIfNoEntry: false })
    return found?.isDirectory() === true || found?.isFile() === true
  })
  const steps = plan.steps.map((step): Step => {
    if (step.op !== 'file' || !ACCOUNTS.includes(step.at)) return step
    return { ...step, text: withUser(`${ROOT[step.at]}${systemAccounts(step.at)}`, step.text) }
  })
  return {
    ...plan,
    steps: [...steps.slice(0, -1), ...there.map(path => shown(path, path)), ...steps.slice(-1)],
  }
}

/** Variables that say who runs commands. */
export const asRoot = (plan: Plan): Plan => ({
  ...plan,
  env: plan.env.map(one => (['USER', 'LOGNAME'].includes(one.name) ? { ...one, value: 'root' } : one)),
})

/** The accounts of the system's packages, which dpkg looks up. People have higher ids, and membership is left out. */
function systemAccounts(file: string): string {
  const lines = readFileSync(file, 'utf8').split('\n')
  const ofPackages = lines.filter(line => {
    const id = Number(line.split(':')[2] || '0')
    return (id > 0 && id < 1000) || id === 65_534
  })
  return `${ofPackages.map(line => (file === '/etc/group' ? line.replace(/[^:]*$/, '') : line)).join('\n')}\n`
}

/** Grants outside the project, which are the host's own also for a root that may change everything else. */
export function grantedPlaces({ steps, workspace }: Plan): readonly GuestPath[] {
  const places = steps.flatMap(step =>
    step.op === 'bind' && step.why !== 'system' && !isWithin(step.at, workspace) ? [step.at] : [],
  )
  return places.filter(place => !places.some(other => other !== place && isWithin(place, other)))
}
