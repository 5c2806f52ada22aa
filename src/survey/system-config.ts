/** The files of the host's `/etc` that a sandbox sees: named by the system view, and existing. One listing finds all. */
import { readdirSync } from 'node:fs'
import { SYSTEM_CONFIG, SYSTEM_CONFIG_FAMILIES } from '../plan/system-view.ts'

export function systemConfig(etc = '/etc'): string[] {
  const there = new Set(namesIn(etc))
  const plain = SYSTEM_CONFIG.filter(path => there.has(path.split('/')[2] ?? '')).map(
    path => etc + path.slice('/etc'.length),
  )
  const families = SYSTEM_CONFIG_FAMILIES.flatMap(({ name, parts }) =>
    [...there]
      .filter(one => name.test(one))
      .flatMap(one => (parts === undefined ? [`${etc}/${one}`] : partsOf(`${etc}/${one}`, parts))),
  )
  return [...plain, ...families].sort()
}

/** Each version has its own directory. */
const partsOf = (directory: string, parts: readonly string[]): string[] =>
  namesIn(directory).flatMap(version =>
    namesIn(`${directory}/${version}`)
      .filter(part => parts.includes(part))
      .map(part => `${directory}/${version}/${part}`),
  )

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
  } catch {
    return []
  }
}
